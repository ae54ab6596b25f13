#include "reports/answer/names.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/document/metrics.h"
#include "reports/format/words.h"

namespace trainyard::reports {

const Metric& published_metric(MetricKind kind) {
  const auto is_wanted = [&](const Metric& metric) { return metric.published && metric.kind == kind; };
  return *std::ranges::find_if(metrics(), is_wanted);
}

std::vector<std::string> arms_of(const Comparison& comparison) {
  std::vector<std::string> arms;
  for (const Cell& cell : comparison.cells)
    for (const Arm& arm : cell.arms)
      if (std::ranges::find(arms, arm.value) == arms.end()) arms.push_back(arm.value);
  return arms;
}

std::string value_text(const experiments::Compare& compare, const std::string& value) {
  static const std::set<std::string> counts{"threads", "epochs", "replicas", "stages", "micro_batches"};
  const std::string& axis = compare.axis;
  if (axis == "strategy" || axis == "model" || axis == "group") return value;
  if (!counts.contains(axis)) return with_spaces(axis) + " " + value;
  std::string noun = with_spaces(axis);
  if (value == "1") noun = axis == "micro_batches" ? "micro-batch" : noun.substr(0, noun.size() - 1);
  return value + " " + noun;
}

std::vector<std::string> cell_names(const Comparison& comparison) {
  constexpr std::string_view all_models = "all models";
  std::vector<std::string> names;
  for (const Cell& cell : comparison.cells) {
    std::string label = cell.label;
    if (cell.model.empty() && label.starts_with(all_models))
      label.erase(0, all_models.size() + (label.size() > all_models.size() ? 2 : 0));  // with ", "
    names.push_back(std::move(label));
  }
  return names;
}

std::string counted_range(const std::set<std::int64_t>& values, const std::string& noun) {
  if (values.empty()) return "";
  const std::string range = values.size() == 1 ? "" : std::to_string(*values.begin()) + " – ";
  return range + (noun.empty() ? std::to_string(*values.rbegin()) : counted(*values.rbegin(), noun));
}

std::string with_label(const std::string& label, const std::string& text) {
  return text.empty() ? "" : label + text;
}

std::string heading(const Comparison& comparison, const std::string& what) {
  std::string text = what + " against " + baseline_text(comparison.compare);
  if (comparison.experiment.empty()) return text;
  return comparison.experiment + ": " + lower_first(text);
}

std::string no_verdicts_text(const Comparison& comparison) {
  return fmt::format("{}o verdicts: there is no arm of {} to compare with {}.",
                     comparison.experiment.empty() ? "N" : comparison.experiment + ": n",
                     comparison.compare.axis, baseline_text(comparison.compare));
}

}  // namespace trainyard::reports
