#include <algorithm>
#include <cmath>
#include <set>

#include "reports/analysis/parts.h"
#include "reports/format/number_text.h"
#include "reports/results/metrics.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

Point mean_point(double x, const std::vector<double>& values) {
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  Point point{x, NAN, NAN, NAN, static_cast<int>(finite.size())};
  if (finite.size() == 1) point.mean = finite.front();
  if (finite.size() < 2) return point;
  const Estimate estimate = paired_estimate(finite);
  const Interval interval = confidence_interval(estimate, 0.95);
  point.mean = estimate.mean;
  point.low = interval.low;
  point.high = interval.high;
  return point;
}

namespace {

struct SampledArm {
  const ArmRuns* runs = nullptr;
  Arm* arm = nullptr;
  bool comparable = false;        // with the baseline
  bool times_comparable = false;  // likewise, in times and energy
};

// The runs of the arm with a value, in the order of `trainyard export final`: by run key.
std::vector<const Observation*> runs_with(const ArmRuns& arm, const Metric& metric) {
  std::vector<const Observation*> runs;
  const db::MetricColumn column = final_column(metric);
  for (const Observation& observation : arm.runs) {
    const db::FinalMetrics* const final = observation.final;
    if (final != nullptr && value_counts(observation, metric) && std::isfinite((*final)[column]))
      runs.push_back(&observation);
  }
  std::ranges::sort(runs, {}, [](const Observation* one) { return one->run->run_key; });
  return runs;
}

Sample sample_of(const std::vector<const Observation*>& runs, const Metric& metric) {
  const db::MetricColumn column = final_column(metric);
  std::vector<double> values;
  values.reserve(runs.size());
  for (const Observation* one : runs) values.push_back((*one->final)[column]);
  const Point point = mean_point(0, values);
  Sample sample{.metric = metric.name, .n = point.n, .mean = point.mean, .interval = {point.low, point.high}};
  if (point.n > 1) sample.sd = paired_estimate(values).spread;
  return sample;
}

std::set<std::string> pairs_of(const std::vector<const Observation*>& runs) {
  std::set<std::string> pairs;
  for (const Observation* one : runs) pairs.insert(one->pair);
  return pairs;
}

std::string mean_text(const Sample& sample, const Metric& metric) {
  const double scale = metric.kind->scale;
  return with_half(scale * sample.mean, scale * (sample.interval.high - sample.interval.low) / 2).mean;
}

bool should_have(const ArmRuns& arm, const Metric& metric) {
  return std::ranges::any_of(arm.runs, [&](const Observation& observation) {
    return observation.final != nullptr && known_to_have(*observation.run, metric);
  });
}

// Means that look equal are all best. If all arms would be best, none is.
void mark_best(const std::vector<Sample*>& candidates, const Metric& metric) {
  if (candidates.empty()) return;
  const auto [low, high] = std::ranges::minmax_element(candidates, {}, &Sample::mean);
  const Sample& best = metric.higher_is_better() ? **high : **low;
  const std::string text = mean_text(best, metric);
  for (Sample* sample : candidates)
    sample->best = sample->mean == best.mean || mean_text(*sample, metric) == text;
  if (std::ranges::all_of(candidates, &Sample::best))
    for (Sample* sample : candidates) sample->best = false;
}

// The samples of one metric, unless no run has it or should have it.
void add_metric(std::vector<SampledArm>& arms, const experiments::Compare& compare, const Metric& metric) {
  std::vector<std::vector<const Observation*>> runs;
  bool known = false;
  for (const SampledArm& one : arms) {
    runs.push_back(runs_with(*one.runs, metric));
    known = known || !runs.back().empty() || should_have(*one.runs, metric);
  }
  if (!known) return;
  std::vector<Sample*> candidates;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    Sample& sample = arms[i].arm->samples.emplace_back(sample_of(runs[i], metric));
    const bool same_runs = compare.pair.empty() ? runs[i].size() == runs.front().size()
                                                : pairs_of(runs[i]) == pairs_of(runs.front());
    const bool comparable = metric.kind->is_cost() ? arms[i].times_comparable : arms[i].comparable;
    if (sample.n > 0 && same_runs && comparable) candidates.push_back(&sample);
  }
  mark_best(candidates, metric);
}

}  // namespace

void add_samples(const CellVerdicts& judged, const experiments::Compare& compare, Cell& cell) {
  std::vector<SampledArm> arms{{&judged.cell.baseline, &cell.baseline, true, true}};
  for (std::size_t i = 0; i < cell.arms.size(); ++i) {
    const bool comparable = refusal_of(cell.arms[i]).empty();
    arms.push_back({&judged.cell.arms[i], &cell.arms[i], comparable,
                    comparable && judged.comparability[i].times_refused.empty()});
  }
  for (std::size_t i = 0; i < cell.limits.size(); ++i)
    arms.push_back({&judged.cell.limits[i], &cell.limits[i], false, false});
  for (const Metric& metric : metrics())
    if (!metric.is_total() ||
        std::ranges::find(judged.verdicts, metric.name, &TestedVerdict::metric) != judged.verdicts.end())
      add_metric(arms, compare, metric);
}

}  // namespace trainyard::reports
