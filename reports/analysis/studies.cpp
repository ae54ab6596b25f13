#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/named_row.h"
#include "reports/analysis/parts.h"
#include "reports/format/words.h"
#include "reports/results/metrics.h"

namespace trainyard::reports {

namespace {

// Empty if the value is not one number.
std::optional<double> number_of(const db::RunSummary& run, const std::string& axis) {
  const Value* value = value_or_null(run.axes, axis);
  if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(value); list && list->size() == 1)
    return static_cast<double>(list->front());
  return std::nullopt;
}

using Runs = std::vector<const Observation*>;

// The finished runs of all comparisons, each once, in the order of the plan.
Runs finished_runs(const ReportData& data, const std::vector<JudgedComparison>& comparisons) {
  std::map<std::string, const Observation*> by_key;
  for (const JudgedComparison& comparison : comparisons)
    for (const CellVerdicts& judged : comparison.cells)
      for (const ArmRuns* arm : judged.cell.compared())
        for (const Observation& observation : arm->runs)
          if (observation.final != nullptr) by_key.emplace(observation.run->run_key, &observation);
  Runs runs;
  for (const db::RunSummary& run : data.runs)
    if (const auto found = by_key.extract(run.run_key)) runs.push_back(found.mapped());
  return runs;
}

std::vector<double> values_of(const Runs& runs, const std::string& axis) {
  std::set<double> values;
  for (const Observation* one : runs)
    if (const auto value = number_of(*one->run, axis)) values.insert(*value);
  return {values.begin(), values.end()};
}

bool is_numeric(const Runs& runs, const std::string& axis) {
  return std::ranges::all_of(runs, [&](const Observation* one) {
    return !one->run->axes.contains(axis) || number_of(*one->run, axis).has_value();
  });
}

// Whether each value of one axis goes with exactly one value of the other.
bool change_together(const Runs& runs, const std::string& one, const std::string& other) {
  std::map<double, double> to;
  std::map<double, double> from;
  return std::ranges::all_of(runs, [&](const Observation* observation) {
    const auto x = number_of(*observation->run, one);
    const auto y = number_of(*observation->run, other);
    return x && y && to.try_emplace(*x, *y).first->second == *y &&
           from.try_emplace(*y, *x).first->second == *x;
  });
}

// Axes that are not model, strategy, seed or pairing.
std::vector<std::string> further_axes(const ReportData& data,
                                      const std::vector<JudgedComparison>& comparisons) {
  std::vector<std::string> names = data.plan.varied;
  std::erase_if(names, [&](const std::string& name) {
    return name == "model" || name == "strategy" || name == "seed" ||
           std::ranges::any_of(comparisons, [&](const JudgedComparison& comparison) {
             return std::ranges::find(comparison.compare.pair, name) != comparison.compare.pair.end();
           });
  });
  return names;
}

// The studies without their metrics.
std::vector<ParameterStudy> numeric_axes(const Runs& runs, const std::vector<std::string>& names) {
  std::vector<ParameterStudy> axes;
  for (const std::string& name : names) {
    const std::vector<double> values = values_of(runs, name);
    if (values.size() < 2 || !is_numeric(runs, name)) continue;
    const auto same = std::ranges::find_if(
        axes, [&](const ParameterStudy& study) { return change_together(runs, study.axis, name); });
    if (same != axes.end())
      same->tied.push_back(name);
    else
      axes.push_back({name, values, {}, "", {}, {}});
  }
  return axes;
}

// The metrics of a study: those of the published table, those of a single task, and the time per epoch.
std::vector<const Metric*> studied_metrics() {
  std::vector<const Metric*> found;
  for (const Metric& metric : metrics()) {
    const bool of_task = !metric.task.empty() && (metric.name.starts_with("validation-") ||
                                                  metric.of == nullptr || metric.of->phases().size() == 1);
    if (metric.published || of_task) found.push_back(&metric);
  }
  return found;
}

// NaN if the run does not have the metric, or its time does not count.
double metric_value(const Observation& observation, const Metric& metric) {
  if (!value_counts(observation, metric)) return std::nan("");
  return metric.kind->scale * (*observation.final)[final_column(metric)];
}

using Groups = std::vector<std::pair<std::string, Runs>>;  // by name, in the order of the runs

class StudyMaker {
 public:
  StudyMaker(const ReportData& data, const std::vector<JudgedComparison>& comparisons)
      : comparisons_(comparisons),
        runs_(finished_runs(data, comparisons)),
        further_(further_axes(data, comparisons)) {
    for (const Observation* one : runs_) value_of_key(by_model_, title_of(*one->run)).push_back(one);
  }

  std::vector<ParameterStudy> studies() const {
    std::vector<ParameterStudy> result;
    for (ParameterStudy study : numeric_axes(runs_, further_)) {
      const auto compared = std::ranges::find_if(comparisons_, [&](const JudgedComparison& comparison) {
        return comparison.compare.axis == study.axis;
      });
      if (compared != comparisons_.end()) study.baseline = compared->compare.baseline;
      for (const auto& [title, runs] : by_model_) {
        study.models.push_back(title);
        for (const Metric* metric : studied_metrics()) add_metric(study, title, runs, *metric);
      }
      if (!study.metrics.empty()) result.push_back(std::move(study));
    }
    return result;
  }

 private:
  // Values that tell lines apart: strategy and further axes that differ between `runs`, except the study's.
  std::string label_of(const Observation& observation, const Runs& runs, const ParameterStudy& study) const {
    std::string label;
    const auto add = [&](const std::string& name) {
      const std::string value = value_of(*observation.run, name);
      const bool differs = std::ranges::any_of(
          runs, [&](const Observation* other) { return value_of(*other->run, name) != value; });
      if (!differs) return;
      label += (label.empty() ? "" : ", ") + (name == "strategy" ? value : with_spaces(name) + " " + value);
    };
    add("strategy");
    for (const std::string& name : further_)
      if (name != study.axis && std::ranges::find(study.tied, name) == study.tied.end()) add(name);
    return label.empty() ? observation.run->strategy : label;
  }

  void add_metric(ParameterStudy& study, const std::string& title, const Runs& runs,
                  const Metric& metric) const {
    Groups by_label;
    for (const Observation* one : runs)
      if (number_of(*one->run, study.axis))
        value_of_key(by_label, label_of(*one, runs, study)).push_back(one);
    StudiedMetric studied{runs.front()->run->model, title, metric.name, {}, {}, 0};
    for (const auto& [label, of_label] : by_label) {
      std::map<double, std::vector<double>> values;
      for (const Observation* one : of_label)
        values[*number_of(*one->run, study.axis)].push_back(metric_value(*one, metric));
      StudyLine line{label, {}};
      for (const auto& [x, at] : values)
        if (const Point point = mean_point(x, at); point.n > 0) line.points.push_back(point);
      if (!line.points.empty()) studied.lines.push_back(std::move(line));
    }
    for (const Observation* one : runs) {
      if (!std::isnan(metric_value(*one, metric))) studied.runs.push_back(one->run->run_key);
      studied.left_out += value_counts(*one, metric) ? 0 : 1;
    }
    if (std::ranges::any_of(studied.lines, [](const StudyLine& line) { return line.points.size() > 1; }))
      study.metrics.push_back(std::move(studied));
  }

  const std::vector<JudgedComparison>& comparisons_;
  Runs runs_;
  std::vector<std::string> further_;
  Groups by_model_;
};

}  // namespace

std::vector<ParameterStudy> parameter_studies(const ReportData& data,
                                              const std::vector<JudgedComparison>& comparisons) {
  return StudyMaker(data, comparisons).studies();
}

}  // namespace trainyard::reports
