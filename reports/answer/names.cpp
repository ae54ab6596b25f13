#include "reports/answer/names.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/words.h"
#include "reports/results/metrics.h"

namespace trainyard::reports {

namespace {

// "two devices", "four ranks on two devices"; empty if the runs of the arm differ or have one device.
std::string devices_text(const Comparison& comparison, const std::string& arm) {
  std::set<std::string> texts;
  for (const CellVerdicts& judged : comparison.cells)
    for (const Arm& one : judged.cell.arms) {
      if (one.value != arm) continue;
      for (const Observation& observation : one.runs) {
        const auto ranks = static_cast<std::size_t>(observation.run->replicas * observation.run->stages);
        const std::size_t devices = observation.launched == nullptr ? 0 : observation.launched->devices;
        texts.insert(ranks <= 1 ? ""
                     : devices == 0 || devices == ranks
                         ? counted_in_words(ranks, "device")
                         : counted_in_words(ranks, "rank") + " on " + counted_in_words(devices, "device"));
      }
    }
  return texts.size() == 1 ? *texts.begin() : "";
}

}  // namespace

const Metric& published_metric(MetricKind kind) {
  return *std::ranges::find_if(metrics(),
                               [&](const Metric& metric) { return metric.published && metric.kind == kind; });
}

std::vector<std::string> arms_of(const Comparison& comparison) {
  std::vector<std::string> arms;
  for (const CellVerdicts& judged : comparison.cells)
    for (const Arm& arm : judged.cell.arms)
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

std::string arm_text(const Comparison& comparison, const std::string& arm) {
  const std::string text = value_text(comparison.compare, arm);
  const std::string devices =
      comparison.compare.axis == "strategy" ? devices_text(comparison, arm) : std::string();
  return devices.empty() ? text : text + " on " + devices;
}

CellNames::CellNames(const Comparison& comparison) {
  std::set<std::string> models;
  for (const CellVerdicts& judged : comparison.cells) {
    std::string label = judged.cell.label;
    if (judged.cell.model.empty()) {  // models are compared
      constexpr std::string_view all = "all models, ";
      label = label.starts_with(all) ? label.substr(all.size()) : "";
    }
    labels_.push_back(label);
    models.insert(judged.cell.model);
  }
  noun_ = models.size() == labels_.size() && !models.contains("") ? "model" : "setting";
}

std::string CellNames::text(const std::set<std::size_t>& cells) const {
  if (cells.size() == 1) return labels_.at(*cells.begin());
  if (cells.size() == size())
    return size() == 2 ? fmt::format("both {}s", noun_) : fmt::format("all {} {}s", in_words(size()), noun_);
  std::vector<std::string> names;
  names.reserve(cells.size());
  for (const std::size_t cell : cells) names.push_back(labels_[cell]);
  return fmt::format("{} of {} {}s ({})", in_words(cells.size()), in_words(size()), noun_,
                     some_of(names, most_names));
}

std::string CellNames::all() const {
  std::set<std::size_t> cells;
  for (std::size_t i = 0; i < size(); ++i) cells.insert(i);
  return size() <= most_names ? some_of(labels_, most_names) : text(cells).substr(4);  // without "all "
}

std::string with_label(const std::string& label, const std::string& text) {
  return text.empty() ? "" : label + text;
}

}  // namespace trainyard::reports
