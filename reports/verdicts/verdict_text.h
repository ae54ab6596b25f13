// A verdict in words and numbers, the same on the page, in tables and on a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/design/experiment.h"
#include "reports/verdicts/comparison.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

// "−43.2 %", "+0.10 pp", "+0.0012 absolute"; "–" without pairs.
std::string effect_text(const Verdict& verdict);
// "[−43.6, −42.8]": the confidence interval of this level, without its unit; "–" without an estimate.
std::string interval_text(const Verdict& verdict, double level = 0.95);
// "a factor of 1.05", "±0.5 pp", "±0.005".
std::string margin_text(const Verdict& verdict);
// "1.81 × as fast", for times; empty otherwise.
std::string speed_text(const Verdict& verdict);
std::string p_with_hypothesis(std::optional<double> p, const std::string& hypothesis);  // "0.012 (inside)"
std::string p_text(std::optional<double> p);  // "0.012", "< 0.0001"; "–" if nothing was tested

struct VerdictBadge {
  VerdictKind word;
  const char* style;  // class
  const char* glyph;
  const char* text;
};
std::span<const VerdictBadge> looks();  // in the order of a legend
const VerdictBadge& badge_of(VerdictKind word);

// "margin ±0.5 pp"
std::string margin_of(const Metric& metric, const experiments::Margins& margins);

// A verdict as a plain record, for `trainyard compare` and other programs.
struct VerdictRecord {
  std::string model;                                         // of the catalogue; empty if models are compared
  std::string label;                                         // of the cell: "MLP, batch 64"
  std::vector<std::pair<std::string, std::string>> further;  // other varied values of the cell
  std::string metric;                                        // "accuracy", "loss", "seconds"
  std::string phase;                                         // "train", "validation", "test"
  std::string baseline;
  std::string arm;
  VerdictKind verdict = VerdictKind::inconclusive;
  std::string reason;            // with all notes and dropped pairs
  std::optional<double> effect;  // arm against baseline, in `unit`
  std::string unit;              // see `unit_name`
  std::optional<Interval> ci95;  // belongs to the tests of a shift
  std::optional<Interval> ci90;  // belongs to the test of equivalence
  std::string effect_text;       // "−43.2 %", "–"
  std::string ci95_text;         // "[−43.6, −42.8]", "–"
  std::string ci90_text;
  std::optional<double> p;      // after Holm; empty if nothing was tested
  std::string hypothesis;       // of p, see `Verdict::hypothesis`
  std::optional<double> level;  // threshold of p
  int n = 0;
  std::optional<int> seeds_needed;  // a planning value
  bool cannot_be_resolved = false;  // more than a hundred seeds are needed
  bool verified = true;
  std::vector<Caveat> caveats;          // what weakens the word
  std::vector<std::string> remarks;     // the parts of `reason`
  std::string not_verified;             // of the arm, see `CellVerdicts::not_verified`
  std::vector<std::string> left_out;    // planned pairs (unpaired: runs), each with its reason
  std::optional<Interval> margin;       // as a change, in `unit`
  std::optional<double> baseline_mean;  // of the metric over the n pairs: seconds, loss, fraction
  std::optional<double> arm_mean;
  int look = 1;   // look of the verdict
  int looks = 1;  // number of looks
  double alpha = 0;
  std::vector<std::string> baseline_runs;  // keys of the runs of this look
  std::vector<std::string> arm_runs;
};

// "percent", "percentage points" ("points" for BLEU), "dB", "units of loss".
const char* unit_name(const Verdict& verdict);

std::vector<VerdictRecord> verdict_records(const Comparison& comparison);

// ", REPLACED, EXPLORATORY": the marks of caveats, each once, to append to a word. Empty without caveats.
std::string marks_text(const std::vector<Caveat>& caveats);
std::vector<std::string> marks_of(const std::vector<Caveat>& caveats);
std::string caveat_text(const Caveat& caveat);  // "REPLACED: 6 results of ddp …"

// "IMPROVES"; if there are several looks "IMPROVES, decided at the first look, n = 3"; with a reason
// "NOT TIMED: four ranks on two devices", "NO DATA: all three runs of ddp failed". Then the caveats.
std::string word_with_reason(const Verdict& verdict);
std::string word_with_reason(const VerdictRecord& record);

// Reason, caveats, notes and dropped pairs: in parts, and as one text.
std::vector<std::string> remark_parts(const Verdict& verdict);
std::string remarks_of(const Verdict& verdict);

// Remarks on the verdicts, one line per distinct remark with its arms and metrics:
// "NO DATA: all three runs of ddp failed [MLP ddp: all 8 metrics, and 5 other arms]". NOT VERIFIED is first.
std::vector<std::string> grouped_remarks(const std::vector<VerdictRecord>& records);

}  // namespace trainyard::reports
