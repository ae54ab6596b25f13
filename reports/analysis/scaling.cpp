#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "experiments/run/strategies.h"
#include "reports/analysis/parts.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

// Times that count, by pair.
std::map<std::string, double> seconds_by_pair(const ArmRuns& arm) {
  static const Metric& metric = find_metric("train-seconds");
  std::map<std::string, double> seconds;
  for (const Observation& observation : arm.runs) {
    if (observation.final == nullptr || !value_counts(observation, metric)) continue;
    const double value = (*observation.final)["epoch_train_seconds"];
    if (value > 0) seconds[observation.pair] = value;
  }
  return seconds;
}

// ln(baseline time / arm time) of each pair.
std::vector<double> log_ratios(const ArmRuns& baseline, const ArmRuns& arm) {
  const std::map<std::string, double> before = seconds_by_pair(baseline);
  std::vector<double> logarithms;
  for (const auto& [pair, seconds] : seconds_by_pair(arm)) {
    const double* partner = value_or_null(before, pair);
    if (partner != nullptr) logarithms.push_back(std::log(*partner / seconds));
  }
  return logarithms;
}

void add_speed_up(const ArmRuns& baseline, const ArmRuns& runs, Arm& arm) {
  const Point mean = mean_point(static_cast<double>(arm.devices), log_ratios(baseline, runs));
  if (mean.n > 0)
    arm.speed_up = Point{mean.x, std::exp(mean.mean), std::exp(mean.low), std::exp(mean.high), mean.n};
}

// Whether two runs are equal in all values except those in `free`.
bool is_like(const std::map<std::string, Value>& one, const std::map<std::string, Value>& other,
             const std::set<std::string>& free) {
  const auto same_in = [&](const auto& these, const auto& those) {
    return std::ranges::all_of(these, [&](const auto& axis) {
      const Value* found = value_or_null(those, axis.first);
      return free.contains(axis.first) || (found != nullptr && *found == axis.second);
    });
  };
  return same_in(one, other) && same_in(other, one);
}

// A limit with the keys of its runs.
struct MeasuredLimit {
  MachineLimit limit;
  std::vector<std::string> runs;
};
using Limits = std::map<int, MeasuredLimit>;  // by number of runs at once

// `gain`: mean of ln(time alone / time of `runs` at once).
MachineLimit limit_of(int runs, double gain, const Interval& interval, int pairs) {
  return {runs, runs * std::exp(gain), runs * std::exp(interval.low), runs * std::exp(interval.high), pairs};
}

Limits packed_limits(const ReportData& data, const CellRuns& cell) {
  std::vector<double> alone;  // logarithms of seconds
  for (const auto& [pair, seconds] : seconds_by_pair(cell.baseline)) alone.push_back(-std::log(seconds));
  if (alone.empty()) return {};
  const Observation& first = cell.baseline.runs.front();
  std::map<int, std::vector<double>> together;
  Limits limits;
  for (const db::PackedRun& packed : data.packed) {
    if (packed.at_once > 1 && packed.circumstances_hash == first.run->circumstances_hash &&
        is_like(packed.axes, first.run->axes, {"seed", "epochs"})) {
      together[packed.at_once].push_back(-std::log(packed.epoch_train_seconds));
      limits[packed.at_once].runs.push_back(packed.run_key);
    }
  }
  for (auto& [runs, logarithms] : together) {
    const bool several = alone.size() > 1 && logarithms.size() > 1;
    const Interval interval = several ? confidence_interval(welch_estimate(alone, logarithms), 0.95)
                                      : Interval{std::nan(""), std::nan("")};
    limits[runs].limit = limit_of(runs, mean_of(logarithms) - mean_of(alone), interval, 0);
  }
  return limits;
}

// No pairs if the runs waited for one another, do other work than the baseline, or ran under other circumstances.
MeasuredLimit independent_limit(const ArmRuns& baseline, const ArmRuns& arm) {
  MeasuredLimit found;
  const auto like_baseline = [](const Observation& before, const Observation& run) {
    return before.run->circumstances_hash == run.run->circumstances_hash &&
           is_like(run.run->axes, before.run->axes, {"seed", "epochs", "strategy", "replicas"});
  };
  ArmRuns equal;
  for (const Observation& run : arm.runs) {
    const Observation* partner = partner_of(run, baseline);
    const bool waits = experiments::find_strategy(run.run->kind).in_step;
    if (waits || partner == nullptr || !like_baseline(*partner, run)) continue;
    equal.runs.push_back(run);
    found.limit.runs = static_cast<int>(run.run->replicas);
    for (const Observation* one : {partner, &run}) found.runs.push_back(one->run->run_key);
  }
  const Point gain = mean_point(0, log_ratios(baseline, equal));
  found.limit = limit_of(found.limit.runs, gain.mean, {gain.low, gain.high}, gain.n);
  return found;
}

using PartsByRun = std::map<std::string, const db::TimeParts*>;

void add_mean_parts(const ArmRuns& runs, const PartsByRun& by_run, Arm& arm) {
  int count = 0;
  for (const Observation& observation : runs.runs) {
    const auto* found = value_or_null(by_run, observation.run->run_key);
    if (observation.final == nullptr || !observation.final->times_count || found == nullptr) continue;
    ++count;
    for (const auto& [part, seconds] : (*found)->seconds) arm.time_parts[part] += seconds;
  }
  for (auto& [part, seconds] : arm.time_parts) seconds /= count;
}

// The first recorded step of a run. Empty if a rank did not record it, or if the clocks of hosts differ.
std::optional<StepTimeline> timeline_of(const ReportData& data, const std::string& run, std::int64_t rows) {
  StepTimeline timeline{run, 0, 0, {}};
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  std::set<std::string> hosts;
  for (const db::StepEvent& event : data.step_events) {
    if (event.run_key != run) continue;
    if (seen.empty()) std::tie(timeline.epoch, timeline.step) = std::tie(event.epoch, event.step);
    if (timeline.epoch != event.epoch || timeline.step != event.step) break;
    seen.insert({event.replica, event.stage});
    hosts.insert(event.host);
    timeline.events.push_back(
        {event.replica, event.stage, event.part, event.micro_batch, event.begin, event.end});
  }
  if (seen.size() != static_cast<std::size_t>(rows) || hosts.size() != 1) return std::nullopt;
  return timeline;
}

void add_timeline(const ReportData& data, const ArmRuns& runs, Arm& arm) {
  if (arm.stages < 2) return;  // nothing is recorded
  for (const bool counts : {true, false})
    for (const Observation& observation : runs.runs)
      if (!arm.timeline && observation.final != nullptr && observation.final->times_count == counts)
        arm.timeline = timeline_of(data, observation.run->run_key, arm.replicas * arm.stages);
}

}  // namespace

void add_scaling(const ReportData& data, const CellRuns& runs, Cell& cell,
                 std::vector<Statement>& statements) {
  PartsByRun by_run;
  for (const db::TimeParts& time : data.times) by_run[time.run_key] = &time;
  const std::vector<const ArmRuns*> arms = runs.compared();
  for (std::size_t i = 0; i < arms.size(); ++i) {
    Arm& arm = i == 0 ? cell.baseline : cell.arms[i - 1];
    if (i > 0) add_speed_up(runs.baseline, *arms[i], arm);
    add_mean_parts(*arms[i], by_run, arm);
    add_timeline(data, *arms[i], arm);
  }
  Limits limits = packed_limits(data, runs);
  for (const ArmRuns& arm : runs.limits)
    if (MeasuredLimit found = independent_limit(runs.baseline, arm); found.limit.pairs > 0)
      limits[found.limit.runs] = std::move(found);
  for (const auto& [count, found] : limits) {
    if (found.limit.speed_up <= count)
      cell.machine_limits.push_back(found.limit);
    else
      statements.push_back(
          {Severity::unfair,
           fmt::format(
               "{}: {} independent runs at once were {:.2f} times as fast as one, which is impossible. "
               "This limit of the machine is not drawn. Its runs: {}.",
               cell.label, count, found.limit.speed_up, joined(found.runs))});
  }
}

}  // namespace trainyard::reports
