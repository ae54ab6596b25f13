// trainyard run: train what is left of an experiment, watch it, keep everything, make the report.
#include <iostream>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "db/database.h"
#include "orchestrator/data_profiles.h"
#include "orchestrator/journal.h"
#include "orchestrator/sweep.h"
#include "reports/report.h"
#include "tools/trainyard/command.h"
#include "tools/trainyard/experiment_options.h"
#include "tools/trainyard/plan_experiment.h"
#include "tools/trainyard/stop_signal.h"

namespace trainyard::tools {
namespace {

struct RunOptions : ExperimentOptions {
  bool dry_run = false;
  bool no_report = false;
};

void enter_in_journal(const experiments::Experiment& experiment, const orchestrator::Yard& yard,
                      db::Database& database) {
  const auto names = db::experiment_names(database);
  const bool again = std::find(names.begin(), names.end(), experiment.name) != names.end();
  const auto known = again ? db::latest_plan(database, experiment.name).data_profiles
                           : std::vector<experiments::ProfiledData>{};
  const auto entry = orchestrator::run_entry(experiment, orchestrator::data_profiles(experiment, known));
  orchestrator::append_to_journal(yard.journal(), entry);
  database.transaction([&] { db::Ingest(database).journal_entry(entry); });
}

orchestrator::SweepResult sweep(const experiments::Experiment& experiment, const orchestrator::Plan& plan,
                                const orchestrator::Yard& yard, db::Database& database,
                                const orchestrator::Programs& programs) {
  const StopSignal stop;
  const auto launcher = orchestrator::local_launcher();
  const auto status = isatty(STDOUT_FILENO) ? orchestrator::terminal_status(STDOUT_FILENO)
                                            : orchestrator::plain_status(std::cout);
  return orchestrator::run_sweep(experiment, plan, yard, database, programs, *launcher, *status,
                                 stop.count());
}

void print_failures(const orchestrator::SweepResult& result) {
  for (const auto& failure : result.failures)
    std::cerr << "failed: " << failure.label << " (" << failure.key << "): " << failure.first_error
              << "\n        log " << failure.log << '\n';
}

void make_report(const db::Database& database, const experiments::Experiment& experiment,
                 const orchestrator::Yard& yard) {
  const auto data = reports::gather(database, experiment.name);
  const auto content = reports::compose(data);
  const auto written = reports::write_report(content, yard.report(experiment.name));
  std::cout << '\n'
            << reports::verdict_table_text(content) << "\nreport: " << written.front().string() << '\n';
}

// False where a finished run is not as the file expects.
bool as_expected(const db::Database& database, const experiments::Experiment& experiment) {
  if (experiment.expect.empty()) return true;
  const auto missed = reports::missed_expectations(database, experiment.name);
  for (const auto& line : missed) std::cerr << "missed: " << line << '\n';
  return missed.empty();
}

int run(const RunOptions& options) {
  if (options.dry_run) return plan_experiment(options);
  auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  experiments::resolve_data(*experiment, experiments::data_search(options.data));
  const auto machine = machine_for(*experiment);
  const auto yard = orchestrator::yard_from(options.yard);
  const orchestrator::YardLock lock(yard, "trainyard run " + options.file.string());
  auto database = db::Database::open_for_writing(yard.database());
  enter_in_journal(*experiment, yard, database);

  const auto plan = orchestrator::make_plan(*experiment, machine.devices, machine.circumstances, &database);
  const auto result = sweep(*experiment, plan, yard, database, machine.programs);
  std::cout << result.finished << " runs finished, " << result.skipped << " were finished before, "
            << result.failures.size() << " failed\n";
  print_failures(result);
  if (result.interrupted) {
    std::cerr << "interrupted: what was finished is kept, the same command continues\n";
    return interrupted;
  }
  const bool anything = result.finished + result.skipped > 0;
  if (anything && !options.no_report) make_report(database, *experiment, yard);
  const bool reached = !anything || as_expected(database, *experiment);
  return result.failures.empty() && reached ? done : run_failed;
}

}  // namespace

void add_run(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("run", "train what is left of an experiment, then make its report");
  auto options = std::make_shared<RunOptions>();
  add_experiment_options(*command, *options);
  add_place_options(*command, *options);
  command->add_flag("--dry-run", options->dry_run, "the same as `trainyard plan`");
  command->add_flag("--no-report", options->no_report, "leave the report to `trainyard report`");
  command->callback([options, &invocation] { invocation.action = [options] { return run(*options); }; });
}

}  // namespace trainyard::tools
