// Verdicts: one per arm, cell and metric. The procedure is in docs/verdicts-and-statistics.md: differences
// per pair, three-sided test against the margin, Holm's correction over the cells of one metric and one arm,
// and a part of α for each look. Verdicts are computed from the data each time and never stored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/results/cells.h"
#include "reports/results/metrics.h"
#include "reports/statistics/procedure.h"
#include "reports/statistics/statistics.h"
#include "reports/verdicts/comparability.h"

namespace trainyard::reports {

// Scale of differences and changes.
// - Difference d: positive if the arm is better. Tests use d.
// - Change: arm against baseline in the direction of the metric; negative if a time or loss is smaller.
enum class Scale {
  log_ratio,  // times and losses: d = ln(A/B); change in percent
  absolute,   // small losses: d = A − B; change in units of loss
  points,     // accuracies, BLEU: d = B − A; change in percentage points
  decibels    // PSNR: d = B − A; change in dB
};

// Why a verdict has its word.
enum class ReasonKind {
  none,
  few_pairs,       // too few for a test
  few_seeds,       // the test did not decide, and more seeds can
  narrow_margin,   // the test did not decide, and no number of seeds that is planned for can
  constant,        // all differences are equal
  diverged,        // the loss of an arm is not finite
  planned_runs,    // they are not finished
  placement,       // more ranks than devices
  no_values,       // of an arm
  no_ratio,        // a value is not above zero
  not_comparable,  // the arms differ in a term of the contract
  broken           // the parity check failed
};

// `text` has the details of this verdict. Texts on several verdicts group them by `kind`.
struct Reason {
  ReasonKind kind = ReasonKind::none;
  std::string text;
};

struct Verdict {
  std::string metric;  // name in `metrics()`
  std::string arm;
  VerdictKind word = VerdictKind::inconclusive;
  Reason reason;                     // for example why it is inconclusive or interim
  std::vector<Caveat> caveats;       // what weakens the word
  std::vector<std::string> notes;    // on other looks, changed margins, warm-up
  std::vector<std::string> dropped;  // pairs left out, each with its reason
  Scale scale = Scale::log_ratio;
  double margin = 0;                 // δ, on the scale of the differences
  bool verified = true;              // false: a foreign arm does not state all terms of the contract
  bool diverged = false;             // decided by divergence, not by the test
  bool constant = false;             // all differences are equal: compared with the margin, not tested
  int n = 0;                         // pairs (unpaired: runs of the smaller arm)
  std::optional<Estimate> estimate;  // of the differences; empty if n < 2
  std::optional<double> difference;  // of the only pair, if n = 1
  double baseline_mean = 0;          // of the metric over the n pairs; NaN if n = 0
  double arm_mean = 0;
  int look = 1;      // from 1: the look of all values here
  int looks = 1;     // number of looks
  double level = 0;  // the part of α that this look spends: the threshold of adjusted_p
  double alpha = 0;  // of the cell's first plan
  std::vector<std::string> baseline_runs;  // keys of all runs of this look, also of those left out
  std::vector<std::string> arm_runs;
  ThreeSided p;                     // before Holm
  double adjusted_p = 1;            // after Holm
  bool tested = false;              // part of its family's test
  std::optional<int> seeds_needed;  // planning value, for inconclusive cells
  bool cannot_be_resolved = false;  // more than `most_seeds_planned` seeds are needed
  // The p-value to show, after Holm; empty if nothing was tested. Constant differences have none, but count
  // as members of their family.
  std::optional<double> p_value() const {
    return tested && !constant ? std::optional(adjusted_p) : std::nullopt;
  }
  // The hypothesis of the p-value in the three-sided test: "better than the margin", "worse than the margin"
  // or "inside the margin". Empty if there is no p-value.
  std::string hypothesis() const;
};

// Start of the note that names the look of the decision: "decided at the first look, n = 3".
inline constexpr const char* decided_at_look = "decided at ";

struct CellVerdicts {
  Cell cell;
  std::vector<Verdict> verdicts;  // by arm, then metric, without metrics that are not defined for the arm
  std::vector<Comparability> comparability;  // of each arm, in the order of the cell
  // "NOT VERIFIED: the records do not state …", one text per arm; empty if the arm is verified.
  std::string not_verified(const std::string& arm) const;
  const Verdict* find(const std::string& arm, const std::string& metric) const;  // null: not defined
};

// Cells that are in the journal use margins, α and `final` of their first plan, others those of `compare`.
std::vector<CellVerdicts> judge(const ReportData& data, const experiments::Compare& compare);

// A difference as a change: percent, points, dB or units of loss.
double as_change(Scale scale, double difference);
// The change of a verdict's estimate with its confidence interval.
struct Change {
  double value = 0;
  Interval interval;
};
Change change_of(const Verdict& verdict, double level);
Interval margin_as_change(const Verdict& verdict);

}  // namespace trainyard::reports
