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

// How differences are taken, and in what a change is shown: change = arm against baseline in the metric's own
// direction (a faster arm has a negative change), difference d = positive where the arm is better.
enum class Scale {
  log_ratio,  // times and losses: d = ln(A/B); change in percent
  absolute,   // small losses: d = A − B; change in units of loss
  points,     // accuracies, BLEU: d = B − A; change in percentage points
  decibels    // PSNR: d = B − A; change in dB
};

struct Verdict {
  std::string metric;  // name in `metrics()`
  std::string arm;
  VerdictKind word = VerdictKind::inconclusive;
  std::string reason;                // why it is inconclusive or interim, or what is special; may be empty
  std::vector<std::string> notes;    // what is to be read with it: later looks, changed margins, warm-up
  std::vector<std::string> dropped;  // pairs left out, each with its reason
  Scale scale = Scale::log_ratio;
  double margin = 0;                 // δ, on the scale of the differences
  bool verified = true;              // false: a foreign arm leaves out terms of the contract
  bool diverged = false;             // decided by divergence, outside the test
  bool constant = false;             // all differences are the same number: compared, not tested
  int n = 0;                         // pairs (unpaired: runs of the smaller arm)
  std::optional<Estimate> estimate;  // of the differences; empty where n < 2
  std::optional<double> difference;  // of the only pair, where n = 1
  double baseline_mean = 0;          // of the metric itself over the n pairs; NaN where there are none
  double arm_mean = 0;
  int look = 1;      // from 1: the look that all numbers here are of …
  int looks = 1;     // … of so many
  double level = 0;  // the part of α that this look spends: adjusted_p is held against it
  double alpha = 0;  // of the cell's first plan
  std::vector<std::string> baseline_runs;  // keys of the runs of this look, those left out among them
  std::vector<std::string> arm_runs;
  ThreeSided p;                     // before Holm
  double adjusted_p = 1;            // after Holm
  bool tested = false;              // took part in its family's test
  std::optional<int> seeds_needed;  // planning value, for inconclusive cells
  bool cannot_be_resolved = false;  // more than `most_seeds_planned` seeds
  // As shown, after Holm; none where nothing was tested. Constant differences are counted in their family all
  // the same.
  std::optional<double> p_value() const {
    return tested && !constant ? std::optional(adjusted_p) : std::nullopt;
  }
  // What the p-value is for, of the three-sided test: "better than the margin", "worse than the margin" or
  // "inside the margin"; empty if there is no p-value.
  std::string hypothesis() const;
};

// Begins the note that says which of several looks decided: "decided at the first look, n = 3".
inline constexpr const char* decided_at_look = "decided at ";

struct CellVerdicts {
  Cell cell;
  std::vector<Verdict> verdicts;  // by arm, then metric; a metric that is not defined for an arm is missing
  std::vector<Comparability> comparability;  // of each arm, in the order of the cell
  // "NOT VERIFIED: not stated are …", to be said once per arm; empty if the arm is verified.
  std::string not_verified(const std::string& arm) const;
  const Verdict* find(const std::string& arm, const std::string& metric) const;  // null: not defined
};

// Margins, α and `final` of `compare` hold for cells that the journal knows nothing of; for all others those
// of the day when they were first planned.
std::vector<CellVerdicts> judge(const ReportData& data, const experiments::Compare& compare);

// The change of an estimate as shown: percent, points or units of loss, with the interval of this level.
double as_change(Scale scale, double difference);
struct Change {
  double value = 0;
  Interval interval;
};
Change change_of(const Verdict& verdict, double level);
Interval margin_as_change(const Verdict& verdict);

}  // namespace trainyard::reports
