#include "tools/trainyard/commands/time_estimate.h"

#include <algorithm>
#include <chrono>

#include "experiments/protocol/progress.h"
#include "experiments/protocol/record.h"
#include "tools/trainyard/cli/sweep_display.h"

namespace trainyard::tools {
namespace {

// Kind of a run, as in `db::median_run_seconds`.
std::string kind_of(const db::RunSummary& run) {
  const auto cap = run.axes.find("train_samples");
  return run.model + " " + run.strategy + " " + std::to_string(run.epochs) + " " + run.dataset + " " +
         (cap == run.axes.end() ? "all" : trainyard::to_text(cap->second));
}

// Seconds since a time of a record. Empty if the text is not a time.
std::optional<double> seconds_since(const std::string& text) {
  const auto time = experiments::time_from(text);
  if (!time) return std::nullopt;
  return std::max(0.0, std::chrono::duration<double>(std::chrono::system_clock::now() - *time).count());
}

std::optional<double> known_seconds(const std::map<std::string, double>& medians, const db::RunSummary& run) {
  const auto found = medians.find(kind_of(run));
  return found == medians.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> left_of_active(const db::Database& database, const orchestrator::Yard& yard,
                                     const db::RunSummary& run, std::optional<double> expected) {
  const auto attempts = db::attempts_of_run(database, run.run_key);
  if (attempts.empty()) return expected;
  const auto rank = static_cast<int>(run.stages) - 1;
  const auto progress = experiments::read_progress(yard.attempt(run.run_key, attempts.back().attempt) /
                                                   experiments::rank_progress_name(rank));
  const auto elapsed = seconds_since(attempts.back().started);
  if (!elapsed) return std::nullopt;
  return seconds_left(progress ? fraction_done(*progress) : 0, *elapsed, expected);
}

// Whether the current sweep will train it: it is planned, or an earlier sweep ended it unfinished.
bool waits(const db::RunSummary& run, const std::string& asked) {
  if (!run.in_latest_plan || run.status == "finished" || run.status == "running") return false;
  return run.status == "planned" || run.updated < asked;
}

}  // namespace

TimeEstimate time_estimate(const db::Database& database, const orchestrator::Yard& yard,
                           const std::vector<db::RunSummary>& runs, const std::string& asked) {
  const auto medians = db::median_run_seconds(database);
  TimeEstimate estimate;
  double sum = 0;
  std::size_t active = 0;
  bool known = true;
  for (const auto& run : runs) {
    const auto expected = known_seconds(medians, run);
    std::optional<double> left;
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

}  // namespace trainyard::tools
