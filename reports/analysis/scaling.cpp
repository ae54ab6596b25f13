#include "reports/analysis/scaling.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/analysis/samples.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

double seconds_of(const Observation& observation) {
  // Times of runs that shared the host do not count. Times of ranks that share a device do, with a note in
  // the caption.
  const bool alone = observation.launched == nullptr || observation.launched->host_exclusive;
  return observation.final != nullptr && alone ? (*observation.final)["epoch_train_seconds"] : NAN;
}

std::map<std::string, double> seconds_by_pair(const ArmRuns& arm) {
  std::map<std::string, double> seconds;
  for (const Observation& observation : arm.runs)
    if (const double value = seconds_of(observation); value > 0) seconds[observation.pair] = value;
  return seconds;
}

// ln(baseline time / arm time) of each pair.
std::vector<double> log_ratios(const ArmRuns& baseline, const ArmRuns& arm) {
  const std::map<std::string, double> before = seconds_by_pair(baseline);
  std::vector<double> logarithms;
  for (const auto& [pair, seconds] : seconds_by_pair(arm)) {
    const auto partner = before.find(pair);
    if (partner != before.end()) logarithms.push_back(std::log(partner->second / seconds));
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
      const auto found = those.find(axis.first);
      return free.contains(axis.first) || (found != those.end() && found->second == axis.second);
    });
  };
  return same_in(one, other) && same_in(other, one);
}

std::map<int, MachineLimit> packed_limits(const ReportData& data, const CellRuns& cell) {
  std::vector<double> alone;
  for (const auto& [pair, seconds] : seconds_by_pair(cell.baseline)) alone.push_back(seconds);
  std::map<int, std::vector<double>> together;  // epoch seconds by number of runs at once
  if (alone.empty()) return {};
  const Observation& first = cell.baseline.runs.front();
  for (const db::PackedRun& packed : data.packed) {
    if (packed.at_once > 1 && packed.circumstances_hash == first.run->circumstances_hash &&
        is_like(packed.axes, first.run->axes, {"seed", "epochs"}))
      together[packed.at_once].push_back(packed.epoch_train_seconds);
  }
  std::map<int, MachineLimit> limits;
  for (auto& [runs, seconds] : together)
    limits[runs] = {.runs = runs, .speed_up = runs * median(alone) / median(seconds)};
  return limits;
}

// No pairs if the runs do other work than the baseline, ran in other circumstances or shared a device.
MachineLimit independent_limit(const ArmRuns& baseline, const ArmRuns& arm) {
  MachineLimit limit;
  if (baseline.runs.empty()) return limit;
  const db::RunSummary& first = *baseline.runs.front().run;
  for (const Observation& observation : arm.runs) {
    const db::RunSummary& run = *observation.run;
    const bool shared = observation.launched != nullptr && observation.launched->devices_shared;
    const bool planned = run.circumstances_hash.empty();
    if (shared || !is_like(run.axes, first.axes, {"seed", "epochs", "strategy", "replicas"})) return limit;
    if (!planned && run.circumstances_hash != first.circumstances_hash) return limit;
    limit.runs = static_cast<int>(run.replicas);
  }
  const Point ratio = mean_point(limit.runs, log_ratios(baseline, arm));
  limit.speed_up = limit.runs * std::exp(ratio.mean);
  limit.low = limit.runs * std::exp(ratio.low);
  limit.high = limit.runs * std::exp(ratio.high);
  limit.pairs = ratio.n;
  return limit;
}

using PartsByRun = std::map<std::string, const db::TimeParts*>;

void add_mean_parts(const ArmRuns& runs, const PartsByRun& by_run, Arm& arm) {
  int count = 0;
  for (const Observation& observation : runs.runs) {
    const auto found = by_run.find(observation.run->run_key);
    if (observation.final == nullptr || found == by_run.end()) continue;
    ++count;
    for (const auto& [part, seconds] : found->second->seconds) arm.time_parts[part] += seconds;
  }
  for (auto& [part, seconds] : arm.time_parts) seconds /= count;
}

}  // namespace

void add_scaling(const ReportData& data, const CellRuns& runs, Cell& cell) {
  for (std::size_t i = 0; i < cell.arms.size(); ++i) add_speed_up(runs.baseline, runs.arms[i], cell.arms[i]);
  std::map<int, MachineLimit> limits = packed_limits(data, runs);
  for (const ArmRuns& arm : runs.limits) {
    const MachineLimit limit = independent_limit(runs.baseline, arm);
    if (limit.pairs > 0) limits[limit.runs] = limit;
  }
  for (const auto& [count, limit] : limits) cell.machine_limits.push_back(limit);
}

void add_time_parts(const ReportData& data, const CellRuns& runs, Cell& cell) {
  PartsByRun by_run;
  for (const db::TimeParts& time : data.times) by_run[time.run_key] = &time;
  add_mean_parts(runs.baseline, by_run, cell.baseline);
  for (std::size_t i = 0; i < cell.arms.size(); ++i) add_mean_parts(runs.arms[i], by_run, cell.arms[i]);
}

}  // namespace trainyard::reports
