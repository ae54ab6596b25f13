// Names in the sentences of the answer: arms, cells and metrics.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

inline constexpr std::size_t most_names = 4;  // in one list

// The metric of this kind in the table of models by verdict.
const Metric& published_metric(MetricKind kind);

// Values of the compared axis in the order of the cells.
std::vector<std::string> arms_of(const Comparison& comparison);

// "2 threads", "learning rate 0.1", "ddp": a value of the compared axis.
std::string value_text(const experiments::Compare& compare, const std::string& value);

// The same with its devices: "ddp on two devices", "mp-ddp on four ranks on two devices".
std::string arm_text(const Comparison& comparison, const std::string& arm);

// The cells of a comparison: "MLP", "both models", "four of six models (A, B, C and D)".
class CellNames {
 public:
  explicit CellNames(const Comparison& comparison);

  std::size_t size() const { return labels_.size(); }

  // `cells`: positions. Empty if the only cell has no name.
  std::string text(const std::set<std::size_t>& cells) const;

  std::string all() const;

 private:
  std::vector<std::string> labels_;
  std::string noun_;
};

// `label` before `text`; empty if `text` is empty.
std::string with_label(const std::string& label, const std::string& text);

}  // namespace trainyard::reports
