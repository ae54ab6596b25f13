#include "tools/trainyard/cli/experiment_options.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "db/queries/earlier_results.h"
#include "db/queries/queries.h"
#include "experiments/matrix/stage_split.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/resources/cpu_topology.h"
#include "orchestrator/resources/device_leases.h"
#include "orchestrator/resources/shared_lock.h"
#include "orchestrator/sweep/recovery.h"
#include "orchestrator/yard/journal.h"
#include "reports/analysis/analysis.h"
#include "reports/format/aligned_text.h"
#include "reports/report/report.h"
#include "reports/results/sanity_checks.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/sweep_display.h"
#include "tools/trainyard/cli/terminal.h"

namespace trainyard::tools {

namespace {

// Prints the first 20 errors and the first 20 warnings, and the number of the others.
void print_problems(const std::vector<Problem>& problems) {
  constexpr std::size_t most = 20;
  std::size_t errors = 0, warnings = 0;
  for (const auto& problem : problems)
    if (++(problem.warning ? warnings : errors) <= most) std::cerr << to_text(problem) << '\n';
  if (warnings > most) std::cerr << "and " << counted(warnings - most, "more warning") << '\n';
  if (errors > most)
    std::cerr << "and " << counted(errors - most, "more error")
              << "; correct these first, then check again\n";
}

std::string devices_text(const orchestrator::PlannedRun& run) {
  std::string text;
  for (const auto& device : run.devices) text += (text.empty() ? "" : " ") + device.name;
  return text + (run.devices_shared ? " (shared)" : "");
}

// "GPUs: cuda:0 NVIDIA H200 (cores 0-7), …"; empty for a plan on CPU cores.
std::string gpu_lines(const orchestrator::Plan& plan) {
  std::vector<std::string> gpus;
  for (const auto& device : plan.devices)
    if (!device.gpu.empty() && !device.cores.empty())
      gpus.push_back(fmt::format("{} {} (cores {})", device.name, device.gpu,
                                 orchestrator::cpu_list_text(device.cores)));
  return gpus.empty() ? "" : fmt::format("\nGPUs: {}\n", fmt::join(gpus, ", "));
}

std::string state_text(const orchestrator::Plan& plan, const orchestrator::PlannedRun& run) {
  switch (run.state) {
    case orchestrator::PlanState::finished:
      return run.times_problem.empty() ? "finished" : "finished (times do not count)";
    case orchestrator::PlanState::done_elsewhere:
      return plan.reuse ? "reused (done elsewhere)" : "to run (done elsewhere)";
    case orchestrator::PlanState::left_out:
      return "left out";
    case orchestrator::PlanState::to_run:
      break;
  }
  return run.times_problem.empty() ? "to run" : "to run (times did not count)";
}

// "stages of vgg11 mp-ddp: layers 0-8 | 9-30 (…)": one line per distinct split.
std::string stages_lines(const orchestrator::Plan& plan) {
  std::vector<std::string> lines;
  for (const auto& run : plan.runs) {
    if (run.run.strategy.stages == 1) continue;
    std::string line = fmt::format("stages of {} {}: layers {}\n", run.run.model, run.run.strategy.name,
                                   experiments::stages_text(run.run));
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines.empty() ? "" : "\n" + fmt::format("{}", fmt::join(lines, ""));
}

}  // namespace

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

void add_experiment_options(CLI::App& command, ExperimentOptions& options) {
  refuse_empty(command.add_option("FILE", options.file, "experiment file (TOML)")->required());
  command.add_option("--set", options.selection.set, "set a key for all runs: --set epochs=1")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--where", options.selection.where,
                  "only runs with this value: --where model=mlp (can be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option(
          "--exclude-where", options.selection.exclude_where,
          "leave out runs with all of these values: --exclude-where model=mlp,seed=3 (can be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  refuse_empty(command
                   .add_option("--as", options.selection.as,
                               "name of the experiment and its report (default: that of the file; NAME-try "
                               "if --set changes runs)")
                   ->type_name("NAME"));
}

void add_order_option(CLI::App& command, orchestrator::PlanOptions& options) {
  command
      .add_option_function<std::string>(
          "--order",
          [&options](const std::string& text) {
            options.order = text == "declared" ? orchestrator::Order::declared : orchestrator::Order::paired;
          },
          "order of the runs:\n"
          "paired: runs with the same seed directly after one another, in an order drawn from data_seed\n"
          "declared: as in the file")
      ->check(one_of({"paired", "declared"}))
      ->default_str("paired");
  command.add_flag("--reuse", options.reuse,
                   "keep the metrics of runs from another host, release, build or environment; their times "
                   "are not compared");
  command.add_flag(
      "--retrain-times", options.retrain_times,
      "train finished runs again if their times did not count, for example because the host was busy");
}

void add_place_options(CLI::App& command, ExperimentOptions& options) {
  refuse_empty(
      command
          .add_option("--data", options.data, "folder of data sets (default: $TRAINYARD_DATA, else [data])")
          ->type_name("DIR"));
  add_yard_option(command, options.yard);
}

std::optional<experiments::Experiment> checked_experiment(const ExperimentOptions& options) {
  auto loaded = options.toml ? experiments::load_text(*options.toml, options.file, options.selection)
                             : experiments::load(options.file, options.selection);
  print_problems(loaded.problems);
  if (loaded.is_try && loaded.experiment)
    std::cerr << "note: --set changes runs, so this experiment and its report are called "
              << loaded.experiment->name << "; --as NAME gives another name\n";
  return std::move(loaded.experiment);
}

// JSON is UTF-8: run files and the journal could not contain another path.
static void check_paths(const std::vector<std::filesystem::path>& paths) {
  for (const auto& path : paths)
    if (!is_utf8(path.string()))
      throw UserError("the path " + printable(path.string()) + " is not UTF-8", "choose another folder");
}

static Machine machine_for(const experiments::Experiment& experiment) {
  Machine machine;
  machine.programs = orchestrator::find_programs();
  const orchestrator::RunnerFacts runner = orchestrator::runner_facts(machine.programs);
  machine.circumstances = runner.circumstances;
  machine.circumstances.communicator = experiment.machine.communicator;
  if (!experiment.machine.on_this_host()) {
    orchestrator::check_threads(experiment, static_cast<std::size_t>(experiment.machine.cpus_per_task));
    machine.devices = orchestrator::launcher_slots(experiment.machine);
    machine.circumstances = orchestrator::elsewhere(machine.circumstances, experiment.machine);
    return machine;
  }
  const std::vector<int> cores = orchestrator::usable_cores();
  orchestrator::check_threads(experiment, cores.size());
  machine.devices = orchestrator::host_devices(experiment.machine, runner.gpus, runner.cuda, cores);
  machine.circumstances = orchestrator::on_devices(machine.circumstances, machine.devices);
  orchestrator::check_commands(experiment);
  orchestrator::check_transport(experiment, machine.devices, machine.circumstances.nccl);
  orchestrator::check_precision(experiment, machine.devices);
  print_problems(orchestrator::device_problems(experiment, machine.devices));
  return machine;
}

Machine ready(experiments::Experiment& experiment, const orchestrator::Yard& yard,
              const std::optional<std::filesystem::path>& data) {
  const auto search = experiments::data_search(data);
  const auto file = std::filesystem::absolute(experiment.file);
  check_paths({yard.root(), yard.runs(), file, experiment.machine.spool, search.value_or("")});
  experiments::resolve_data(experiment, search);
  orchestrator::apply_defaults(experiment.machine);
  auto machine = machine_for(experiment);
  orchestrator::make_launcher({experiment.machine, machine.programs, yard, file.parent_path()});
  return machine;
}

std::string plan_text(const experiments::Experiment& experiment, const orchestrator::Plan& plan,
                      const orchestrator::Yard& yard) {
  reports::Table table;
  table.columns = {"key", "run", "devices", "state", reports::right_column("expected")};
  for (const auto& run : plan.runs)
    table.rows.push_back({run.key, experiments::label(run.run), devices_text(run), state_text(plan, run),
                          !plan.waits(run) || !run.expected_seconds
                              ? std::string()
                              : orchestrator::duration_text(*run.expected_seconds)});
  const auto expected = plan.expected_seconds();
  return reports::aligned_table(table, output_width()) + stages_lines(plan) + gpu_lines(plan) +
         fmt::format("\n{}: {}, {} finished, {} to run{}; yard {}\n", experiment.name,
                     counted(plan.runs.size(), "run"), plan.runs.size() - plan.to_run(), plan.to_run(),
                     plan.to_run() == 0 ? std::string()
                     : expected
                         ? ", about " + orchestrator::duration_text(*expected)
                         : std::string(", expected time unknown until one run of each kind has finished"),
                     yard.root().string()) +
         times_offer(plan);
}

namespace {

namespace fs = std::filesystem;

nlohmann::json asked_json(const Asked& asked) {
  nlohmann::json json = {{"folder", fs::absolute(asked.experiment.file).parent_path().string()},
                         {"set", asked.selection.set},
                         {"where", asked.selection.where},
                         {"exclude_where", asked.selection.exclude_where}};
  if (!asked.selection.as.empty()) json["as"] = asked.selection.as;
  if (asked.data) json["data"] = fs::absolute(*asked.data).string();
  return json;
}

void enter_in_journal(const Asked& asked, const orchestrator::Yard& yard, db::Database& database) {
  const auto names = db::experiment_names(database);
  const bool again = std::find(names.begin(), names.end(), asked.experiment.name) != names.end();
  const auto known = again ? db::latest_plan(database, asked.experiment.name).data_profiles
                           : std::vector<experiments::ProfiledData>{};
  const auto entry = orchestrator::run_entry(
      asked.experiment, orchestrator::data_profiles(asked.experiment, known), asked_json(asked));
  orchestrator::append_to_journal(yard.journal(), entry);
  db::Ingest(database).journal_entry(entry);
}

// The journal keeps the results of finished runs that this sweep trains again.
void journal_replaced_results(const orchestrator::Plan& plan, const orchestrator::Yard& yard,
                              db::Database& database) {
  std::vector<std::string> keys;
  for (const auto& run : plan.runs) {
    const bool finished = run.state == orchestrator::PlanState::done_elsewhere || !run.times_problem.empty();
    if (finished && plan.waits(run)) keys.push_back(run.key);
  }
  const auto results = db::results_of(database, keys);
  if (results.empty()) return;
  const auto entry = orchestrator::retrain_entry(results);
  orchestrator::append_to_journal(yard.journal(), entry);
  db::Ingest(database).journal_entry(entry);
}

orchestrator::Plan plan_of(const Asked& asked, const Machine& machine, const SweepChoices& choices,
                           const db::Database& database,
                           const std::vector<orchestrator::LiveAttempt>& live = {}) {
  return orchestrator::make_plan(asked.experiment, machine.devices, machine.circumstances, &database,
                                 choices.plan, live);
}

std::vector<orchestrator::LiveAttempt> recover(const Asked& asked, const orchestrator::Yard& yard,
                                               db::Database& database) {
  orchestrator::Reattachment reattachment(asked.experiment.machine.launcher);
  return orchestrator::recover(
      yard, database,
      [](const std::string& text) {
        std::cout << text << '\n';
        log::warning("recovered", {{"text", text}});
      },
      [&](const fs::path& attempt) { return reattachment.alive(attempt); });
}

// Whether the sweep trains anything on devices of this host.
bool needs_devices(const experiments::Experiment& experiment, const orchestrator::Plan& plan) {
  return experiment.machine.on_this_host() && plan.to_run() > 0;
}

// What a sweep has of this host, until it ends.
struct HostShare {
  std::optional<orchestrator::SharedLock> lock;  // only timed sweeps
  std::optional<orchestrator::DeviceLeases> leases;
};

orchestrator::SweepResult sweep(const Asked& asked, const orchestrator::Plan& plan,
                                const orchestrator::Yard& yard, db::Database& database,
                                const orchestrator::Programs& programs, orchestrator::Launcher& launcher,
                                HostShare& host, orchestrator::SweepOptions options) {
  options.leases = host.leases ? &*host.leases : nullptr;
  options.others_limit = orchestrator::others_limit_here();
  options.progress_timeout_seconds = asked.experiment.machine.progress_timeout_seconds;
  const StopSignal stop;
  const auto status =
      isatty(STDOUT_FILENO) ? sweep_display(STDOUT_FILENO) : orchestrator::plain_status(std::cout);
  return orchestrator::run_sweep(asked.experiment, plan, yard, database, programs, launcher, *status,
                                 stop.count(), options);
}

// Whether any pending run on this host is timed: its times count only if it has the host to itself.
bool needs_host(const experiments::Experiment& experiment, const orchestrator::Plan& plan) {
  return experiment.machine.on_this_host() && experiment.machine.exclusive_host &&
         std::ranges::any_of(plan.runs, [&](const orchestrator::PlannedRun& run) {
           return plan.waits(run) && !run.devices_shared;
         });
}

orchestrator::HostUser host_user(const Asked& asked, const orchestrator::Yard& yard) {
  return {asked.command, yard.root()};
}

// The cores and GPUs of all pending runs.
std::vector<orchestrator::Device> pending_devices(const orchestrator::Plan& plan) {
  std::vector<orchestrator::Device> devices;
  for (const auto& run : plan.runs)
    if (plan.waits(run)) devices.insert(devices.end(), run.devices.begin(), run.devices.end());
  return devices;
}

// Whether the largest pending run could start now. Its sweep is not timed and leases devices for each run.
bool could_start(const orchestrator::Plan& plan, orchestrator::DeviceLeases& leases) {
  if (plan.one_at_a_time) {
    const auto devices = pending_devices(plan);
    const bool taken = leases.try_take(devices);
    if (taken) leases.give_back(devices);
    return taken;
  }
  std::size_t needed = 0;
  for (const auto& run : plan.runs)
    if (plan.waits(run)) needed = std::max(needed, orchestrator::leased_devices(run.devices));
  return std::cmp_less_equal(
      needed, std::ranges::count_if(plan.devices, [&](const auto& each) { return leases.is_free(each); }));
}

// --no-wait: take the share at once. UserError if another sweep is in the way. A sweep that leases devices for
// each run is checked only now: it waits for devices that another sweep takes later.
HostShare host_now(const Asked& asked, const orchestrator::Yard& yard, const orchestrator::Plan& plan) {
  constexpr const char* advice = "wait for it to end, or leave out --no-wait";
  const fs::path folder = orchestrator::host_lock_folder();
  HostShare share;
  share.leases.emplace(folder, host_user(asked, yard));
  if (needs_host(asked.experiment, plan)) {
    const auto host_lock = orchestrator::host_lock_in(folder);
    const bool locked = orchestrator::taken_soon([&] {
      share.lock = orchestrator::SharedLock::try_take(host_lock, host_user(asked, yard));
      return share.lock.has_value();
    });
    if (!locked)
      throw UserError(
          "this host is reserved for timed runs by " + orchestrator::shared_lock_holder(host_lock), advice);
    if (!orchestrator::taken_soon([&] { return share.leases->try_take(pending_devices(plan)); }))
      throw UserError(share.leases->taken(), advice);
  } else if (!orchestrator::taken_soon([&] { return could_start(plan, *share.leases); })) {
    throw UserError(share.leases->taken(), advice);
  }
  return share;
}

void tell_waiting(const std::string& what, const std::string& why) {
  std::cout << "waiting: " << what << "\n         " << why << " With --no-wait the command fails instead.\n"
            << std::flush;
  log::info("waits for this host", {{"why", what}});
}

// Wait for the share. Empty if a signal ended the waiting.
std::optional<HostShare> host_in_turn(const Asked& asked, const orchestrator::Yard& yard,
                                      const orchestrator::Plan& plan) {
  const StopSignal stop;
  const fs::path folder = orchestrator::host_lock_folder();
  HostShare share;
  share.leases.emplace(folder, host_user(asked, yard));
  if (!needs_host(asked.experiment, plan)) return share;  // it leases devices for each run
  share.lock =
      orchestrator::SharedLock::wait(orchestrator::host_lock_in(folder), host_user(asked, yard), stop.count(),
                                     [](const std::string& holder) {
                                       tell_waiting("this host is reserved for timed runs by " + holder,
                                                    "Two sweeps at once would distort each other's times.");
                                     });
  const bool leased =
      share.lock && share.leases->wait(pending_devices(plan), stop.count(), [](const std::string& taken) {
        tell_waiting(taken, "Timed runs need their devices to themselves.");
      });
  if (!leased) return std::nullopt;
  return share;
}

void print_result(const orchestrator::SweepResult& result) {
  std::cout << counted(result.finished, "run") << " finished, " << result.skipped
            << (result.skipped == 1 ? " was" : " were") << " finished before, " << result.failures.size()
            << " failed\n";
  for (const auto& failure : result.failures) {
    std::cerr << "failed: " << failure.label << " (" << failure.key << "): " << failure.first_error << '\n';
    if (!failure.log.empty()) std::cerr << "        log " << failure.log << '\n';  // no rank was started
  }
  if (result.not_started > 0)
    std::cerr << "given up: " << counted(result.not_started, "run")
              << (result.not_started == 1 ? " was" : " were")
              << " not trained after these failures. Continue with `trainyard resume`.\n";
  if (result.yard_moved)
    std::cerr << "stopped: " << result.stopped_by
              << "\n        Recorded data is intact. Continue with `trainyard resume --yard NEW_FOLDER`.\n";
  else if (!result.stopped_by.empty())
    std::cerr
        << "stopped: " << result.stopped_by
        << "\n        Recorded data is intact. If the disk is full, free some space. Then continue with "
           "`trainyard resume`.\n";
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

// CLI::Range accepts NaN.
CLI::Validator backoff_range() {
  const auto problem = [](const std::string& text) {
    double seconds = 0;
    const bool within = CLI::detail::lexical_cast(text, seconds) && seconds >= 0 && seconds <= 3600;
    return within ? std::string() : "must be a number of seconds in [0, 3600], but is " + text;
  };
  return {problem, "in [0 - 3600]"};
}

// Accepts the names of `log::Level` only.
CLI::Validator level_word() {
  const auto problem = [](const std::string& text) {
    return log::level_named(text) ? std::string()
                                  : "must be one of " + log::level_words() + ", but is \"" + text + "\"";
  };
  return {problem, ""};
}

// False if a finished run misses an expectation of the file.
bool as_expected(const reports::ReportData& data) {
  const auto missed = reports::missed_expectations(reports::check_expectations(data));
  for (const auto& line : missed) std::cerr << "missed: " << line << '\n';
  return missed.empty();
}

// False if an arm is BROKEN. This sweep or an earlier one may have found it.
bool arms_are_sound(const reports::ReportData& data) {
  const auto broken = reports::broken_arms(data);
  for (const auto& line : broken) std::cerr << "broken: " << line << '\n';
  return broken.empty();
}

}  // namespace

void add_sweep_options(CLI::App& command, SweepChoices& choices) {
  add_order_option(command, choices.plan);
  command.add_flag("--failed", choices.plan.failed_only, "only failed runs, not interrupted ones");
  command.add_option("--max-retries", choices.sweep.max_retries, "how often a failed run is tried again")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command
      .add_option("--backoff", choices.sweep.backoff_seconds,
                  "seconds before the first retry, doubled before each further one")
      ->check(backoff_range())
      ->capture_default_str();
  command.add_flag("--fail-fast", choices.sweep.fail_fast, "end the sweep at the first failed run");
  command
      .add_option("--max-failures", choices.sweep.max_failures,
                  "start no more runs after this number of failed runs (0: no limit)")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command.add_flag("--no-wait", choices.no_wait,
                   "if another sweep has this host or its devices, fail instead of waiting");
  auto* level = command
                    .add_option_function<std::string>(
                        "--log-level",
                        [&choices](const std::string& word) { choices.log_level = log::level_named(word); },
                        "level of trainyard.log and of the logs of the ranks: " + log::level_words() +
                            " (default: $TRAINYARD_LOG, else info)")
                    ->check(level_word())
                    ->type_name("LEVEL");
  command.add_flag("--verbose", choices.verbose, "the same as --log-level debug")->excludes(level);
  command.add_flag("--no-report", choices.no_report, "do not write the report");
}

namespace {

log::Level log_level_of(const SweepChoices& choices) {
  if (choices.verbose) return log::Level::debug;
  return choices.log_level ? *choices.log_level : log::level_from_environment();
}

// Print the result, write the report and return the exit code.
int report(const Asked& asked, const SweepChoices& choices, const orchestrator::Yard& yard,
           const db::Database& database, const orchestrator::SweepResult& result) {
  print_result(result);
  if (!result.stopped_by.empty()) return run_failed;
  if (result.interrupted) return interrupted;
  const bool anything = result.finished + result.skipped > 0;
  const std::string& name = asked.experiment.name;
  const bool reported = anything && !choices.no_report;
  const auto data = reported ? reports::gather(database, name) : reports::gather_results(database, name);
  if (reported) make_report(data, yard);
  if (!anything && !choices.no_report) std::cout << "\nno report: no run has finished\n";
  const bool reached = !anything || as_expected(data);
  const bool sound = arms_are_sound(data);
  return result.failures.empty() && result.not_started == 0 && reached && sound ? done : run_failed;
}

// The steps of a sweep: journal, recover, plan, host, prepare, run, report.
// - The journal comes first, so that it has every request before any work for it.
// - Recovery comes before the plan. Otherwise the plan could train finished runs again.
int run_locked(const Asked& asked, const SweepChoices& choices, orchestrator::Yard yard,
               const orchestrator::YardLock& lock, const Machine& machine) {
  auto database = db::open_yard_for_writing(yard.root(), [](const std::string& line) {
    std::cout << line << '\n';
    log::warning("rebuilt", {{"text", line}});
  });
  const fs::path folder = fs::absolute(asked.experiment.file).parent_path();
  const std::string& spool = asked.experiment.machine.spool;
  if (!spool.empty()) yard = orchestrator::with_spool(yard, folder / spool);
  const auto launcher =
      orchestrator::make_launcher({asked.experiment.machine, machine.programs, yard, folder});
  std::optional<HostShare> host;
  if (choices.no_wait)
    if (const auto plan = plan_of(asked, machine, choices, database); needs_devices(asked.experiment, plan))
      host = host_now(asked, yard, plan);
  enter_in_journal(asked, yard, database);
  const auto live = recover(asked, yard, database);
  const auto plan = plan_of(asked, machine, choices, database, live);
  std::cout << times_offer(plan);
  const bool locked = host && (host->lock || !needs_host(asked.experiment, plan));
  if (!locked && needs_devices(asked.experiment, plan)) {
    host = host_in_turn(asked, yard, plan);
    if (!host) {
      std::cerr
          << "interrupted while waiting for this host: nothing was trained, the same command continues\n";
      return interrupted;
    }
  }
  if (!host) host.emplace();
  journal_replaced_results(plan, yard, database);
  if (plan.to_run() > 0) launcher->prepare();
  orchestrator::SweepOptions options = choices.sweep;
  options.yard_lock = &lock;
  const auto result = sweep(asked, plan, yard, database, machine.programs, *launcher, *host, options);
  host.reset();
  return report(asked, choices, yard, database, result);
}

}  // namespace

int run_experiment(Asked asked, const SweepChoices& choices) {
  const log::Level level = log_level_of(choices);
  const auto yard = orchestrator::yard_from(asked.yard);
  const auto machine = ready(asked.experiment, yard, asked.data);
  const orchestrator::YardLock lock(yard, asked.command);
  const log::File file(yard.log(), level);
  log::pass_on(level);
  log::info("begins", {{"command", asked.command}, {"yard", yard.root()}, {"level", to_text(level)}});
  try {
    const int code = run_locked(asked, choices, yard, lock, machine);
    log::info("ends", {{"exit_code", code}});
    return code;
  } catch (const std::exception& error) {
    log::error("ends", {{"cause", error.what()}});
    throw;
  }
}

}  // namespace trainyard::tools
