#include "tools/trainyard/cli/run_sweep.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "db/queries/queries.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/sweep/session.h"
#include "orchestrator/yard/yard.h"
#include "reports/analysis/analysis.h"
#include "reports/report/report.h"
#include "reports/results/sanity_checks.h"
#include "reports/verdicts/needed_runs.h"
#include "tools/trainyard/cli/checked_experiment.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/sweep_display.h"
#include "tools/trainyard/cli/terminal.h"

namespace trainyard::tools {

std::string times_offer(const orchestrator::Plan& plan) {
  std::map<std::string, std::size_t> runs_by_problem;
  for (const auto& run : plan.runs)
    if (run.state == orchestrator::PlanState::finished && !run.times_problem.empty())
      ++runs_by_problem[run.times_problem];
  std::string text;
  for (const auto& [problem, runs] : runs_by_problem)
    text += fmt::format("the times of {} do not count: {}\n", counted(runs, "finished run"), problem);
  return text.empty() ? "" : text + "`run` with --retrain-times trains them again\n";
}

std::function<orchestrator::Needed(const db::Database&)> needed_in(
    const experiments::Experiment& experiment) {
  const auto has_range = [](const experiments::Compare& compare) { return compare.seeds.has_value(); };
  if (std::ranges::none_of(experiment.compare, has_range)) return nullptr;
  return [name = experiment.name](const db::Database& database) {
    const auto names = db::experiment_names(database);
    if (std::ranges::find(names, name) == names.end()) return orchestrator::Needed{};  // not planned yet
    reports::NeededRuns needed = reports::needed_runs(reports::gather_results(database, name));
    return orchestrator::Needed{
        std::move(needed.order), std::move(needed.unneeded), std::move(needed.untimed),
        std::move(needed.lack_times),
        fmt::format("{} of {} need no more seeds", needed.settled, counted(needed.cells, "cell"))};
  };
}

namespace {

namespace fs = std::filesystem;

// The options in addition to the file, for the journal.
nlohmann::json asked_json(const ExperimentOptions& options) {
  nlohmann::json json = {{"folder", fs::absolute(options.file).parent_path().string()},
                         {"set", options.selection.set},
                         {"where", options.selection.where},
                         {"exclude_where", options.selection.exclude_where}};
  if (!options.selection.as.empty()) json["as"] = options.selection.as;
  if (options.selection.max_seeds > 0) json["max_seeds"] = options.selection.max_seeds;
  if (options.data) json["data"] = fs::absolute(*options.data).string();
  return json;
}

void print_result(const orchestrator::SweepResult& result) {
  std::cout << counted(result.finished, "run") << " finished, " << result.skipped
            << (result.skipped == 1 ? " was" : " were") << " finished before, " << result.failures.size()
            << " failed" << (result.not_needed > 0 ? fmt::format(", {} not needed", result.not_needed) : "")
            << '\n';
  for (const auto& failure : result.failures) {
    std::cerr << "failed: " << failure.label << " (" << failure.key << "): " << failure.first_error << '\n';
    if (!failure.log.empty()) std::cerr << "        log " << failure.log << '\n';  // no rank was started
  }
  if (result.not_started > 0)
    std::cerr << "given up: " << counted(result.not_started, "run")
              << (result.not_started == 1 ? " was" : " were")
              << " not trained after these failures. Continue with `trainyard resume`.\n";
  if (!result.stopped_by.empty())
    std::cerr << "stopped: " << result.stopped_by << "\n        Recorded data is intact. "
              << (result.yard_moved
                      ? "Continue with `trainyard resume --yard NEW_FOLDER`.\n"
                      : "If the disk is full, free some space. Then continue with `trainyard resume`.\n");
  else if (result.interrupted)
    std::cerr << "interrupted: finished runs are kept, the same command continues\n";
}

void make_report(const reports::ReportData& data, const orchestrator::Yard& yard) {
  const auto content = reports::compose(reports::make_report(data));
  const auto written = reports::write_report(content, yard.report(data.experiment));
  std::cout << '\n'
            << reports::terminal_table(content, output_width()) << "\nreport: " << written.front().string()
            << '\n';
}

// Print the lines, each after `what`. False if there are any.
bool is_none(const char* what, const std::vector<std::string>& lines) {
  for (const auto& line : lines) std::cerr << what << line << '\n';
  return lines.empty();
}

// Print the result, write the report and return the exit code.
int report(const std::string& name, bool no_report, const orchestrator::Yard& yard,
           const db::Database& database, const orchestrator::SweepResult& result) {
  print_result(result);
  if (!result.stopped_by.empty()) return run_failed;
  if (result.interrupted) return interrupted;
  const bool anything = result.finished + result.skipped > 0;
  const bool reported = anything && !no_report;
  const auto data = reported ? reports::gather(database, name) : reports::gather_results(database, name);
  if (reported) make_report(data, yard);
  if (!anything && !no_report) std::cout << "\nno report: no run has finished\n";
  const bool reached =
      !anything || is_none("missed: ", reports::missed_expectations(reports::check_expectations(data)));
  // This sweep or an earlier one may have found that an arm is BROKEN.
  const bool sound = is_none("broken: ", reports::broken_arms(data));
  return result.failures.empty() && result.not_started == 0 && reached && sound ? done : run_failed;
}

int run_locked(const orchestrator::SweepRequest& request, bool no_report, const orchestrator::Yard& yard,
               const orchestrator::YardLock& lock) {
  orchestrator::Session session(request, yard, lock, [](const std::string& line) {
    std::cout << line << '\n' << std::flush;
  });
  std::cout << times_offer(session.plan());
  std::optional<orchestrator::SweepResult> result;
  {
    const StopSignal stop;
    const auto status =
        isatty(STDOUT_FILENO) ? sweep_display(STDOUT_FILENO) : orchestrator::plain_status(std::cout);
    result = session.run(*status, stop.count());
  }
  if (result) return report(request.experiment.name, no_report, yard, session.database(), *result);
  std::cerr << "interrupted while waiting for this host: nothing was trained, the same command continues\n";
  return interrupted;
}

}  // namespace

int run_sweep(const ExperimentOptions& options, const SweepChoices& choices, const std::string& command) {
  auto experiment = checked_experiment(options);
  if (!experiment) return wrong_usage;
  const log::Level level = choices.log_level ? *choices.log_level : log::level_from_environment();
  const auto yard = orchestrator::yard_from(options.yard);
  auto machine = ready(*experiment, yard, /*makes_yard=*/true, options.data);
  orchestrator::SweepRequest request{.experiment = std::move(*experiment),
                                     .machine = std::move(machine),
                                     .command = command,
                                     .asked = asked_json(options),
                                     .plan = choices.plan,
                                     .sweep = choices.sweep,
                                     .no_wait = choices.no_wait};
  request.sweep.needed = needed_in(request.experiment);
  const orchestrator::YardLock lock(yard, command);
  const log::File file(yard.log(), level);
  log::pass_on(level);
  log::info("begins", {{"command", command}, {"yard", yard.root()}, {"level", to_text(level)}});
  try {
    const int code = run_locked(request, choices.no_report, yard, lock);
    log::info("ends", {{"exit_code", code}});
    return code;
  } catch (const std::exception& error) {
    log::error("ends", {{"cause", error.what()}});
    throw;
  }
}

}  // namespace trainyard::tools
