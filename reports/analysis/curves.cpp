#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "reports/analysis/parts.h"
#include "reports/results/metrics.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

constexpr std::int64_t all_replicas = -1;

using RunCurve = std::vector<std::pair<std::int64_t, double>>;              // of one run, by epoch
using ByEpoch = std::vector<std::pair<std::int64_t, std::vector<double>>>;  // in order of epochs
using Rows = std::map<std::string, std::vector<const db::EpochRow*>>;       // by run

// The finished runs whose values of the metric count. While no run has finished, those that train.
std::vector<const db::RunSummary*> drawn_runs(const ArmRuns& arm, const Metric& metric) {
  std::vector<const db::RunSummary*> counted, open;
  bool finished = false;
  for (const Observation& observation : arm.runs) {
    finished = finished || observation.final != nullptr;
    if (observation.final != nullptr && value_counts(observation, metric)) counted.push_back(observation.run);
    if (is_open(observation) && observation.run->epochs_done > 0) open.push_back(observation.run);
  }
  return finished ? counted : open;
}

// The rows of a run are adjacent, so there is one search per run.
Rows rows_of(const CellRuns& cell, const std::vector<db::EpochRow>& all) {
  Rows rows;
  for (const ArmRuns* arm : cell.compared())
    for (const Observation& observation : arm->runs) rows[observation.run->run_key];
  auto found = rows.end();
  const std::string* last = nullptr;
  for (const db::EpochRow& row : all) {
    if (last == nullptr || *last != row.run_key) found = rows.find(row.run_key);
    last = &row.run_key;
    if (found != rows.end()) found->second.push_back(&row);
  }
  return rows;
}

// A time of a disturbed epoch of a finished run is not a number.
std::vector<RunCurve> read_curves(const Rows& rows, const std::vector<const db::RunSummary*>& runs,
                                  const Metric& metric, std::int64_t replica) {
  const double scale = metric.kind->scale;
  const auto column = epoch_column(metric);
  std::vector<RunCurve> curves;
  for (const db::RunSummary* run : runs) {
    const auto found = rows.find(run->run_key);
    if (found == rows.end()) continue;
    RunCurve curve;
    curve.reserve(found->second.size());
    for (const db::EpochRow* row : found->second)
      if (row->replica == replica) {
        const bool counts = row->times_count || !metric.kind->depends_on_others || run->status != "finished";
        curve.emplace_back(row->epoch, counts ? scale * (*row)[column] : std::nan(""));
      }
    if (!curve.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

// Add a curve, whose epochs are in order.
void add_values(ByEpoch& by_epoch, const RunCurve& curve) {
  std::size_t place = 0;
  for (const auto& [epoch, value] : curve) {
    while (place < by_epoch.size() && by_epoch[place].first < epoch) ++place;
    if (place == by_epoch.size() || by_epoch[place].first != epoch)
      by_epoch.insert(by_epoch.begin() + static_cast<std::ptrdiff_t>(place), {epoch, {}});
    by_epoch[place].second.push_back(value);
  }
}

// The final value of a run's curve.
// - Accuracy and loss: last epoch.
// - Train seconds and energy: median without the first epoch. With fewer than 3 epochs, all count.
// - Validation seconds: sum, in which an epoch without a number counts as the mean of the others.
double final_number(const Metric& metric, const RunCurve& curve) {
  if (!metric.kind->is_cost()) return curve.back().second;
  std::vector<double> values;
  const bool sum = metric.name == "validation-seconds";
  for (const auto& [epoch, value] : curve) {
    const bool warm_up = !sum && curve.size() >= 3 && epoch == curve.front().first;
    if (!warm_up && !std::isnan(value)) values.push_back(value);
  }
  if (!sum) return median(values);
  return std::accumulate(values.begin(), values.end(), 0.0) *
         (static_cast<double>(curve.size()) / static_cast<double>(values.size()));
}

Curve curve_of(const std::vector<RunCurve>& runs, const Metric& metric, std::int64_t replica) {
  Curve curve;
  curve.metric = metric.name;
  curve.replica = replica;
  ByEpoch by_epoch;
  std::vector<double> finals;
  for (const RunCurve& run : runs) {
    add_values(by_epoch, run);
    finals.push_back(final_number(metric, run));
  }
  for (const auto& [epoch, values] : by_epoch) {
    const Point point = mean_point(static_cast<double>(epoch), values);
    if (point.n > 0) curve.points.push_back(point);
  }
  const Point final = mean_point(0, finals);
  if (final.n > 0) curve.final = final;
  return curve;
}

// One point per epoch. x is the mean end time of the epoch over seeds.
std::vector<Point> points_by_second(const ArmRuns& arm, const Rows& averages, const Metric& metric) {
  const double scale = metric.kind->scale;
  const auto column = epoch_column(metric);
  std::map<std::int64_t, std::vector<double>> values;
  std::map<std::int64_t, std::vector<double>> ends;
  for (const db::RunSummary* run : drawn_runs(arm, find_metric("train-seconds"))) {
    const auto found = averages.find(run->run_key);
    if (found == averages.end()) continue;
    double seconds = 0;
    for (const db::EpochRow* row : found->second) {
      const double validation = (*row)["validation_seconds"];
      seconds += (*row)["train_seconds"] + (std::isfinite(validation) ? validation : 0);
      values[row->epoch].push_back(scale * (*row)[column]);
      ends[row->epoch].push_back(seconds);
    }
  }
  std::vector<Point> points;
  for (const auto& [epoch, at_epoch] : values) {
    const Point point = mean_point(mean_point(0, ends[epoch]).mean, at_epoch);
    if (point.n > 0 && std::isfinite(point.x)) points.push_back(point);
  }
  return points;
}

// At the epochs of both curves. Both are in order of epochs.
RunCurve difference(const RunCurve& before, const RunCurve& after, Scale scale) {
  RunCurve curve;
  auto place = before.begin();
  for (const auto& [epoch, value] : after) {
    while (place != before.end() && place->first < epoch) ++place;
    if (place == before.end()) break;
    if (place->first == epoch)
      curve.emplace_back(epoch,
                         scale == Scale::log_ratio ? std::log(value / place->second) : value - place->second);
  }
  return curve;
}

std::vector<Point> mean_differences(const ArmRuns& baseline, const ArmRuns& arm, const Rows& averages,
                                    const Metric& metric, Scale scale) {
  ByEpoch by_epoch;
  for (const Observation& observation : arm.runs) {
    const Observation* partner = partner_of(observation, baseline);
    if (partner == nullptr) continue;
    if (std::ranges::any_of(std::array{partner, &observation}, [&](const Observation* one) {
          return one->final != nullptr && !value_counts(*one, metric);
        }))
      continue;
    for (const RunCurve& before : read_curves(averages, {partner->run}, metric, all_replicas))
      for (const RunCurve& after : read_curves(averages, {observation.run}, metric, all_replicas))
        add_values(by_epoch, difference(before, after, scale));
  }
  std::vector<Point> points;
  for (const auto& [epoch, values] : by_epoch) {
    Point point = mean_point(static_cast<double>(epoch), values);
    if (scale == Scale::log_ratio)
      for (double Point::*value : {&Point::mean, &Point::low, &Point::high})
        point.*value = 100 * std::expm1(point.*value);
    if (point.n > 0) points.push_back(point);
  }
  return points;
}

class CurveReader {
 public:
  CurveReader(const ReportData& data, const CellRuns& runs)
      : averages_(rows_of(runs, data.averages)), replicas_(rows_of(runs, data.replicas)), runs_(runs) {}

  // `verdict`: of the metric, for the scale of differences; may be null.
  void add(const Metric& metric, const Verdict* verdict, const ArmRuns& runs, Arm& arm) const {
    const std::vector<const db::RunSummary*> drawn = drawn_runs(runs, metric);
    Curve whole = curve_of(read_curves(averages_, drawn, metric, all_replicas), metric, all_replicas);
    if (metric.name == "validation-loss") whole.by_second = points_by_second(runs, averages_, metric);
    if (verdict != nullptr && &runs != &runs_.baseline)
      whole.differences = mean_differences(runs_.baseline, runs, averages_, metric, verdict->scale);
    if (!whole.points.empty()) arm.curves.push_back(std::move(whole));
    for (std::int64_t replica = 0; arm.replicas > 1 && replica < arm.replicas; ++replica) {
      Curve curve = curve_of(read_curves(replicas_, drawn, metric, replica), metric, replica);
      if (!curve.points.empty()) arm.curves.push_back(std::move(curve));
    }
  }

 private:
  Rows averages_;
  Rows replicas_;
  const CellRuns& runs_;
};

}  // namespace

void add_curves(const ReportData& data, const CellRuns& runs, Cell& cell) {
  const CurveReader reader(data, runs);
  for (const Metric& metric : metrics()) {
    if (metric.epoch_column.empty()) continue;
    const Verdict* const verdict = cell.find_with_margin(metric.name);
    reader.add(metric, verdict, runs.baseline, cell.baseline);
    for (std::size_t i = 0; i < cell.arms.size(); ++i)
      reader.add(metric, verdict, runs.arms[i], cell.arms[i]);
  }
}

}  // namespace trainyard::reports
