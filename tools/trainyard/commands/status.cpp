// trainyard status: prints the state of all experiments and runs, also while a sweep runs.
#include "orchestrator/plan/status.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include "base/text.h"
#include "db/queries/earlier_results.h"
#include "db/queries/queries.h"
#include "experiments/protocol/progress.h"
#include "experiments/protocol/record.h"
#include "orchestrator/yard/yard.h"
#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/sweep_display.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

struct StatusOptions {
  std::string experiment;
  bool all_runs = false;
  bool watch = false;
  std::optional<std::filesystem::path> yard;
};

// `stamp`: nanoseconds of the monotonic clock.
double seconds_since(std::uint64_t stamp) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now - std::chrono::nanoseconds(stamp)).count();
}

constexpr const char* states[] = {"planned", "running", "finished", "failed", "interrupted"};

using reports::decimals;
using reports::right_column;
using reports::Table;
using Runs = std::vector<db::RunSummary>;
using Counts = std::map<std::string, std::map<std::string, int>>;  // experiment, state

Counts counts_of(const Runs& runs, bool in_latest_plan) {
  Counts counts;
  for (const auto& run : runs)
    if (run.in_latest_plan == in_latest_plan) ++counts[run.experiment][run.status];
  return counts;
}

// The runs of each experiment's latest plan.
Table experiments_table(const Runs& runs, const std::vector<std::string>& names) {
  Counts counts = counts_of(runs, true);
  Table table;
  table.columns = {"experiment", right_column("runs")};
  for (const auto* state : states) table.columns.push_back(right_column(state));
  for (const auto& name : names) {
    auto& row = table.rows.emplace_back(reports::TableRow{name, ""});
    int total = 0;
    for (const auto* state : states) {
      total += counts[name][state];
      row.emplace_back(counts[name][state]);
    }
    row[1] = total;
  }
  return table;
}

constexpr const char* planned_before = "not in the latest plan";

// "sweep: 3 more runs, not in the latest plan: 2 finished, 1 planned", one line per experiment.
std::string earlier_plans(const Runs& runs, const std::vector<std::string>& names) {
  const Counts counts = counts_of(runs, false);
  std::string text;
  for (const auto& name : names) {
    const auto found = counts.find(name);
    if (found == counts.end()) continue;
    int total = 0;
    std::vector<std::string> parts;
    for (const auto* state : states) {
      const auto count = found->second.find(state);
      if (count == found->second.end()) continue;
      total += count->second;
      parts.push_back(fmt::format("{} {}", count->second, state));
    }
    text += fmt::format("{}: {}, {}: {}\n", name, counted(total, "more run"), planned_before,
                        fmt::join(parts, ", "));
  }
  return text;
}

Table runs_table(const Runs& runs) {
  Table table;
  table.columns = {"key",
                   "model",
                   "strategy",
                   right_column("seed"),
                   "status",
                   right_column("epochs"),
                   right_column("train s"),
                   right_column("test %"),
                   "updated"};
  for (const auto& run : runs)
    table.rows.push_back({run.run_key, run.model, run.strategy, run.seed, run.status,
                          fmt::format("{}/{}", run.epochs_done, run.epochs),
                          run.epochs_done > 0 ? decimals(run.total_train_seconds, 2) : "",
                          decimals(100 * run.test_accuracy, 1), run.updated});
  return table;
}

struct TimeEstimate {
  std::map<std::string, double> seconds_left;  // of active runs, by key; absent: unknown
  std::optional<double> sweep_seconds_left;    // empty: unknown
};

// The last attempt of an active run, and what its ranks have written about their progress.
struct ActiveAttempt {
  db::Attempt attempt;
  std::optional<experiments::Progress> progress;
};

// Empty if the run has no attempt yet.
std::optional<ActiveAttempt> active_attempt(const db::Database& database, const orchestrator::Yard& yard,
                                            const db::RunSummary& run) {
  const auto attempts = db::attempts_of_run(database, run.run_key);
  if (attempts.empty()) return std::nullopt;
  const auto rank = static_cast<int>((run.stages - 1) * run.tensor);  // only the last stage has the loss
  return ActiveAttempt{attempts.back(),
                       experiments::read_progress(yard.attempt(run.run_key, attempts.back().attempt) /
                                                  experiments::rank_progress_name(rank))};
}

// Kind of a run, as in `db::median_run_seconds`.
std::string kind_of(const db::RunSummary& run) {
  const auto cap = run.axes.find("train_samples");
  return run.model + " " + run.strategy + " " + std::to_string(run.epochs) + " " + run.dataset + " " +
         (cap == run.axes.end() ? "all" : trainyard::to_text(cap->second));
}

std::optional<double> left_of_active(const db::Database& database, const orchestrator::Yard& yard,
                                     const db::RunSummary& run, std::optional<double> expected) {
  const auto active = active_attempt(database, yard, run);
  if (!active) return expected;
  const auto started = experiments::time_from(active->attempt.started);
  if (!started) return std::nullopt;
  const std::chrono::duration<double> elapsed = std::chrono::system_clock::now() - *started;
  return seconds_left(active->progress ? fraction_done(*active->progress) : 0, std::max(0.0, elapsed.count()),
                      expected);
}

// Whether the current sweep will train it: it is planned, or an earlier sweep ended it unfinished.
bool waits(const db::RunSummary& run, const std::string& asked) {
  if (!run.in_latest_plan || run.status == "finished" || run.status == "running") return false;
  return run.status == "planned" || run.updated < asked;
}

// Active runs are estimated from their progress, pending runs from finished runs of the same kind.
// - runs: those of one experiment.
// - asked: the time of its latest plan.
TimeEstimate time_estimate(const db::Database& database, const orchestrator::Yard& yard, const Runs& runs,
                           const std::string& asked) {
  const auto medians = db::median_run_seconds(database);
  TimeEstimate estimate;
  double sum = 0;
  std::size_t active = 0;
  bool known = true;
  for (const auto& run : runs) {
    const auto median = medians.find(kind_of(run));
    std::optional<double> expected, left;
    if (median != medians.end()) expected = median->second;
    if (run.status == "running") {
      ++active;
      left = left_of_active(database, yard, run, expected);
      if (left) estimate.seconds_left[run.run_key] = *left;
    } else if (waits(run, asked)) {
      left = expected;
    } else {
      continue;
    }
    known = known && left.has_value();
    sum += left.value_or(0);
  }
  // concurrent runs share the remaining time
  if (known) estimate.sweep_seconds_left = sum / static_cast<double>(std::max<std::size_t>(1, active));
  return estimate;
}

// Progress of each active run, from the progress files of its ranks.
Table progress_table(const db::Database& database, const orchestrator::Yard& yard, const Runs& runs,
                     const TimeEstimate& estimate) {
  Table table;
  table.columns = {"running"};
  for (const char* title : {"attempt", "epoch", "step", "loss", "left", "silent s", "job"})
    table.columns.push_back(right_column(title));
  bool any_job = false;
  for (const auto& run : runs) {
    if (run.status != "running") continue;
    const auto active = active_attempt(database, yard, run);
    if (!active) continue;
    const int attempt = active->attempt.attempt;
    const auto& progress = active->progress;
    auto& row = table.rows.emplace_back(
        reports::TableRow{fmt::format("{} {} {} seed {}", run.run_key, run.model, run.strategy, run.seed),
                          attempt, "", "", "", "", "", ""});
    const auto left = estimate.seconds_left.find(run.run_key);
    if (left != estimate.seconds_left.end()) row[5] = clock_text(left->second);
    const auto jobs = db::jobs_of_run(database, run.run_key);
    const auto job = jobs.find(attempt);
    if (job != jobs.end()) row[7] = job->second;
    any_job = any_job || job != jobs.end();
    if (!progress) continue;
    row[2] = fmt::format("{}/{}", progress->epoch, progress->epochs);
    row[3] = fmt::format("{}/{}", progress->step, progress->steps);
    row[4] = decimals(progress->loss, 4);
    row[6] = decimals(seconds_since(progress->stamp), 0);
  }
  if (any_job) return table;
  table.columns.pop_back();
  for (auto& row : table.rows) row.pop_back();
  return table;
}

// Empty if no result was removed.
std::string removed_text(const db::Database& database, const std::string& experiment, const Runs& runs) {
  const auto earlier = db::earlier_results(database, experiment);
  const auto removed = std::ranges::count_if(
      runs, [&](const auto& run) { return run.status != "finished" && earlier.contains(run.run_key); });
  if (removed == 0) return "";
  return fmt::format(
      "{}: {} as missing; `trainyard resume` trains the removed runs again\n\n", experiment,
      removed == 1 ? "1 removed result counts" : fmt::format("{} removed results count", removed));
}

// Runs of the latest plan. With `all_runs`, also the other runs, under their own heading.
std::string listed_runs(const std::string& experiment, const Runs& runs, bool all_runs) {
  Runs listed, others;
  for (const auto& run : runs) {
    if (!run.in_latest_plan)
      others.push_back(run);
    else if (all_runs || run.status != "finished")
      listed.push_back(run);
  }
  std::string text = experiment + ":\n" + aligned_table(runs_table(listed));
  if (listed.empty()) text = experiment + ": every run is finished; --all lists them\n";
  if (all_runs && !others.empty())
    text += "\n" + std::string(planned_before) + ":\n" + aligned_table(runs_table(others));
  return text;
}

std::string status_text(const StatusOptions& options) {
  const auto database = open_yard(options.yard);
  const auto chosen = experiment_named(database, options.experiment);
  const auto names = db::experiment_names(database);
  const auto all = db::run_summaries(database);
  std::string text = aligned_table(experiments_table(all, names)) + earlier_plans(all, names) + "\n";
  Runs runs = all;
  std::erase_if(runs, [&](const auto& run) { return run.experiment != chosen; });
  const auto yard = orchestrator::yard_from(options.yard);
  const bool swept = orchestrator::in_use(yard);
  const TimeEstimate estimate =
      swept ? time_estimate(database, yard, runs, db::latest_plan(database, chosen).time) : TimeEstimate();
  const auto progress = progress_table(database, yard, runs, estimate);
  if (!progress.rows.empty()) {
    text += aligned_table(progress) + "\n";
    const auto left = estimate.sweep_seconds_left;
    text += !swept ? "no sweep manages these runs; `trainyard resume` continues them\n\n"
            : left ? "time left: about " + duration_text(*left) + "\n\n"
                   : "time left: unknown until one run of each kind has finished\n\n";
  }
  return text + removed_text(database, chosen, runs) + listed_runs(chosen, runs, options.all_runs);
}

constexpr auto watch_interval = std::chrono::seconds(2);
constexpr int poll_milliseconds = 100;  // between checks whether the sweep has ended

// Sleep for an interval, or until a signal comes or the sweep ends.
void wait_for_change(const std::atomic<int>& stop, const orchestrator::Yard& yard) {
  const auto until = std::chrono::steady_clock::now() + watch_interval;
  const bool runs = orchestrator::in_use(yard);
  while (stop == 0 && std::chrono::steady_clock::now() < until) {
    ::poll(nullptr, 0, poll_milliseconds);
    if (runs && !orchestrator::in_use(yard)) return;
  }
}

// Print the status until the sweep ends, a signal comes, or the reader is gone.
int watch(const StatusOptions& options) {
  const auto yard = orchestrator::yard_from(options.yard);
  const StopSignal signal;
  wait_for_first_entry(options.yard, [&] { return signal.count() != 0; });
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  std::string shown;
  do {
    shown = status_text(options);
    if (!show_screen(STDOUT_FILENO, shown + (terminal ? "\nCtrl-C ends this, not the sweep\n" : "")))
      return done;
    wait_for_change(signal.count(), yard);
  } while (signal.count() == 0 && orchestrator::in_use(yard));
  const std::string last = status_text(options);
  if (terminal || last != shown) show_screen(STDOUT_FILENO, last);
  if (signal.count() != 0) return interrupted;
  std::cout << "no sweep runs in " << yard.root().string() << '\n';
  return done;
}

int status(const StatusOptions& options) {
  if (options.watch) return watch(options);
  std::cout << status_text(options);
  return done;
}

}  // namespace

void add_status(CLI::App& program, Invocation& invocation) {
  const auto [command, options] = add_verb(
      program, invocation, "status", "show the progress of experiments, and their unfinished runs", status);
  command->add_option("EXPERIMENT", options->experiment, "its name (default: the one run last)");
  command->add_flag("--all,--runs", options->all_runs,
                    "list all runs, also finished ones and those of earlier plans");
  command->add_flag("--watch", options->watch, "print it every 2 s with the time left, until the sweep ends");
  add_yard_option(*command, options->yard);
}

}  // namespace trainyard::tools
