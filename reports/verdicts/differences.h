// The differences for one verdict: pairs of runs, dropped pairs with their reasons, scale and margin.
#pragma once

#include <string>
#include <vector>

#include "reports/results/cells.h"
#include "reports/results/metrics.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

struct Differences {
  int open_runs = 0;                 // planned runs that have neither finished nor failed
  std::vector<double> baseline;      // values of the pairs (unpaired: of all runs)
  std::vector<double> arm;           // the same length if paired
  std::vector<std::string> dropped;  // "seed 3: single failed: …"
  std::string missing;           // why there is no value at all: "all three runs of ddp failed"; else empty
  std::optional<Interval> load;  // if other processes are why: least and most that they took of the cores
  bool warm_up_counts = false;   // a run has fewer than 3 epochs, so its time includes the warm-up epoch
  int timed_epochs = 0, disturbed_epochs = 0;  // of these runs, for a time: used, and left out
  bool baseline_diverged = false;              // while the arm's run of the pair did not
  bool arm_diverged = false;
  bool both_diverged = false;  // in the same pair
  bool diverged() const { return baseline_diverged || arm_diverged || both_diverged; }
};

// Whether a loss is infinite, or NaN although the accuracy of the same samples is known.
bool has_diverged(const Observation& observation);

// Whether a run of the two arms has the metric, will have it, or lost it by divergence.
bool is_defined(const ArmRuns& baseline, const ArmRuns& arm, const Metric& metric);

Differences collect_differences(const ArmRuns& baseline, const ArmRuns& arm, const Metric& metric,
                                const experiments::Compare& compare);

// "seed 7: ddp has no such run", for both arms; empty if the arms are not paired.
std::vector<std::string> without_partner(const ArmRuns& baseline, const ArmRuns& arm,
                                         const experiments::Compare& compare);

// Scale and margin of a metric.
// - A small loss (baseline mean below absolute / (ratio − 1)) is compared by differences.
// - Perplexities use the ratio of the loss, BLEU the points of the accuracy.
struct Measure {
  Scale scale = Scale::log_ratio;
  double margin = 0;
  double points = 100;  // per unit of the metric: 100 for a fraction, 1 for BLEU
  double sign = 1;      // −1: other numbers are better than usual on this scale
};
Measure measure_for(const Differences& differences, const Metric& metric,
                    const experiments::Margins& margins);

// The values on the scale, larger ones are better. On the logarithmic scale, they must be above zero.
std::vector<double> transformed(const std::vector<double>& values, const Measure& measure);

}  // namespace trainyard::reports
