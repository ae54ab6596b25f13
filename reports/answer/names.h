// Names in the sentences of the answer: arms, cells and metrics.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reports/document/metrics.h"
#include "reports/document/report.h"

namespace trainyard::reports {

// The metric of this kind in the table of models by verdict.
const Metric& published_metric(MetricKind kind);

// Values of the compared axis in the order of the cells.
std::vector<std::string> arms_of(const Comparison& comparison);

// "2 threads", "learning rate 0.1", "ddp": a value of the compared axis.
std::string value_text(const experiments::Compare& compare, const std::string& value);

// Names of the cells in a sentence: "MLP, batch 64"; empty if models are compared and nothing else varies.
std::vector<std::string> cell_names(const Comparison& comparison);

// "3 seeds", "3 – 5 seeds"; without a noun "3 – 5"; empty without values.
std::string counted_range(const std::set<std::int64_t>& values, const std::string& noun);

// `label` before `text`; empty if `text` is empty.
std::string with_label(const std::string& label, const std::string& text);

// "Verdicts against single"; in a report of several experiments "first: verdicts against single".
std::string heading(const Comparison& comparison, const std::string& what = "Verdicts");

// The text to show without verdicts: "No verdicts: there is no arm of strategy to compare with single."
std::string no_verdicts_text(const Comparison& comparison);

}  // namespace trainyard::reports
