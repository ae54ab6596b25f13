// Why arms have other results or other times than their baseline, in lines for every output (docs/explain.md).
#pragma once

#include <string>
#include <vector>

#include "reports/document/report.h"

namespace trainyard::reports {

struct Why {
  std::string arm;                   // "CNN ddp"
  std::string baseline;              // "single"
  std::vector<std::string> changes;  // decided ones: "validation accuracy: DETERIORATES −0.5 pp [−0.9, −0.1]"
  std::vector<std::string> causes;  // "batch: 128 samples per step, single has 64. Try: …"
  std::vector<std::string> parts;   // "exposed communication +8.1 % [6.9, 9.3]", of an epoch of the baseline
  std::string open;                 // "not explained: …"; empty if there is nothing to explain
  std::string refusal;              // why no pair is judged: "NOT COMPARABLE: …"; empty if some are
  bool is_silent() const { return causes.empty() && open.empty(); }
};

// One per arm. Arms that must not be compared have causes, too.
std::vector<Why> whys(const Comparison& comparison);
std::vector<std::string> lines_of(const Why& why);  // what is known, then what is open

// The arms that have causes or something open, or all of them, as plain text. `width`: columns of the terminal, 0: not
// wrapped.
std::string why_text(const std::vector<Comparison>& comparisons, std::size_t width, bool all = false);

}  // namespace trainyard::reports
