// Verdicts as plain data: the kind of each, what it is based on, and what weakens it.
// docs/verdicts-and-statistics.md has the procedure.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace trainyard::reports {

struct Interval {
  double low = 0;
  double high = 0;
};

// The last four are not results of a test:
// - interim: planned runs have not finished
// - no_data: one of the two arms has no value at all
// - not_comparable, broken: by the fair-comparison contract
enum class VerdictKind {
  improves,
  no_change,
  deteriorates,
  inconclusive,
  interim,
  no_data,
  not_comparable,
  broken
};

std::string text_of(VerdictKind kind);  // "IMPROVES", "NO CHANGE", …
bool is_decided(VerdictKind kind);      // improves, no change or deteriorates

// Scale of differences and changes.
// - Difference d: positive if the arm is better. Tests use d.
// - Change: arm against baseline in the direction of the metric; negative if a time or loss is smaller.
enum class Scale {
  log_ratio,  // times and losses: d = ln(A/B); change in percent
  absolute,   // small losses: d = A − B; change in units of loss
  points,     // accuracies, BLEU: d = B − A; change in percentage points
  decibels    // PSNR: d = B − A; change in dB
};

inline constexpr int most_seeds_planned = 100;

// "at least 24", "more than 100": a lower limit of the number of seeds; empty: above those that can be planned.
std::string least_seeds(std::optional<int> seeds);

// Why a verdict has its kind.
enum class ReasonKind {
  none,
  few_pairs,       // too few for a test
  few_seeds,       // the test did not decide, and more seeds can
  stopped,         // the test did not decide, and the plan ended before its last pair
  narrow_margin,   // the test did not decide, and no number of seeds that is planned for can
  constant,        // all differences are equal
  diverged,        // the loss of an arm is not finite
  planned_runs,    // they are not finished
  no_values,       // of an arm
  load,            // the times of no run of an arm count, because of other processes
  no_ratio,        // a value is not above zero
  not_comparable,  // the arms differ in a term of the contract
  broken           // the parity check failed
};

// `text` has the details of this verdict. Texts on several verdicts group them by `kind`.
struct Reason {
  ReasonKind kind = ReasonKind::none;
  std::string text;
  std::optional<Interval> load = {};  // least and most that other processes took, as a share of a run's cores
};

// What weakens a word without refusing it. Every output shows the mark with the word, and the text in its row.
struct Caveat {
  std::string mark;  // one word in capital letters: "REPLACED"
  std::string text;  // names runs or seeds, values and numbers
};

inline constexpr const char* identical_mark =
    "IDENTICAL";                                          // does not weaken the word, but limits what it says
inline constexpr const char* replaced_mark = "REPLACED";  // `compare --fail-on replaced` looks for it

// Start of the note on a word before the last look: "decided after 6 of at most 20 pairs".
inline constexpr const char* decided_after = "decided after ";

// The interval whose place decides, after Holm's correction.
struct DecisionInterval {
  double confidence = 0;  // 0.983
  Interval interval;      // of the effect
};

// The estimate of all pairs, if more have finished than the word is based on.
struct LaterEstimate {
  int n = 0;
  double effect = 0;
  Interval ci95;
};

// One verdict: an arm against its baseline, on one metric of one cell.
struct Verdict {
  std::string metric;
  std::string arm;
  VerdictKind kind = VerdictKind::inconclusive;
  Reason reason;                     // for example why it is inconclusive or interim
  std::vector<Caveat> caveats;       // what weakens the word
  std::vector<std::string> notes;    // on looks and later seeds, changed margins, warm-up
  std::vector<std::string> dropped;  // planned pairs (unpaired: runs) left out, each with its reason
  Scale scale = Scale::log_ratio;
  std::optional<double> effect;  // the change of the arm against the baseline, on its scale
  // Intervals of the effect at all looks of the plan together; empty if n < 2.
  std::optional<Interval> ci95;              // belongs to the tests of a shift
  std::optional<Interval> ci90;              // belongs to the test of equivalence
  std::optional<DecisionInterval> decision;  // only if the 95 % interval alone contradicts the word
  std::optional<Interval> margin;            // as a change; empty if there is none
  std::optional<double> p;                   // after Holm; empty if nothing was tested
  std::string hypothesis;              // of p: "better than the margin", "inside the margin"; empty without p
  double alpha = 0;                    // of the cell's first plan: the threshold of p
  int first_look = 0;                  // pairs at the first look of this plan
  int last_look = 0;                   // pairs at its last look; equal: there is one look
  int n = 0;                           // pairs (unpaired: runs of the smaller arm)
  std::optional<LaterEstimate> later;  // on the same scale, if the word is based on fewer
  // Strategies with the same first weights and global batches, and an interval within a thousandth of the
  // margin: the differences are rounding.
  bool identical = false;
  double baseline_mean = NAN;  // of the metric over the n pairs
  double arm_mean = NAN;
  bool verified = true;  // false: a foreign arm does not state all terms of the contract
  // A planning value, for inconclusive verdicts. With `cannot_be_resolved` the fewest seeds, for the least spread
  // that agrees with the data.
  std::optional<int> seeds_needed;
  bool cannot_be_resolved = false;         // with the measured spread, more seeds than can be planned
  std::vector<std::string> baseline_runs;  // keys of all runs of the plan, also of those left out
  std::vector<std::string> arm_runs;
};

}  // namespace trainyard::reports
