// A verdict in words and numbers, the same on the page, in tables and on a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/design/experiment.h"
#include "reports/document/metrics.h"
#include "reports/document/report.h"

namespace trainyard::reports {

// "−43.2 %", "+0.10 pp", "+0.0012 units of loss"; "–" without pairs.
std::string effect_text(const Verdict& verdict);
// "[−43.6, −42.8]": a confidence interval of the effect, without its unit; "–" without an estimate.
std::string interval_text(const Verdict& verdict);         // 95 %
std::string narrow_interval_text(const Verdict& verdict);  // 90 %
// "a factor of 1.05", "±0.5 pp", "±0.005".
std::string margin_text(const Verdict& verdict);
std::string p_with_hypothesis(const Verdict& verdict);  // "0.012 (inside)"
std::string p_text(std::optional<double> p);            // "0.012", "< 0.0001"; "–" if nothing was tested

struct VerdictBadge {
  VerdictKind kind;
  const char* style;  // class
  const char* glyph;
  const char* text;
};
std::span<const VerdictBadge> badges();  // in the order of a legend
const VerdictBadge& badge_of(VerdictKind kind);

// "margin ±0.5 pp"
std::string margin_of(const Metric& metric, const experiments::Margins& margins);

// "percent", "percentage points" ("points" for BLEU), "dB", "units of loss".
const char* unit_name(const Verdict& verdict);
std::string unit_of(Scale scale);  // "%", "points", "dB" or "units of loss"

std::string phase_and_metric(const Verdict& verdict);  // "validation accuracy"

// ", REPLACED, EXPLORATORY": the marks of caveats, each once, to append to a word. Empty without caveats.
std::string marks_text(const std::vector<Caveat>& caveats);
std::vector<std::string> marks_of(const std::vector<Caveat>& caveats);
std::string caveat_text(const Caveat& caveat);  // "REPLACED: 6 results of ddp …"

// "IMPROVES"; if there are several looks "IMPROVES, decided after 6 of at most 20 pairs"; with a reason
// "NO DATA: all three runs of ddp failed". Then the caveats.
std::string word_with_reason(const Verdict& verdict);

// "all 10: −21.3 % [−22.0, −20.5]", if seeds were added after the decision; else empty.
std::string later_text(const Verdict& verdict);

// Reason, caveats, notes and dropped pairs.
std::string remarks_of(const Verdict& verdict);

// Remarks on the verdicts, one line per distinct remark with its arms and metrics:
// "NO DATA: all three runs of ddp failed [MLP ddp: all 8 metrics, and 5 other arms]". NOT VERIFIED is first.
std::vector<std::string> grouped_remarks(const std::vector<Comparison>& comparisons);

}  // namespace trainyard::reports
