// The differences that enter one verdict: which runs pair up, which are dropped and why, on which scale they
// are compared and against which margin.
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
  std::vector<double> arm;           // the same length where paired
  std::vector<std::string> dropped;  // "seed 3: single failed: …"
  std::string missing;    // why there is no value at all: "all three runs of ddp failed"; empty: there is one
  std::string placement;  // why times can never count: "four ranks on two devices"; likewise
  bool warm_up_counts = false;     // a time per epoch of fewer than 3 epochs
  bool baseline_diverged = false;  // where the other arm's partner did not
  bool arm_diverged = false;
  bool both_diverged = false;  // in one and the same pair
  bool diverged() const { return baseline_diverged || arm_diverged || both_diverged; }
};

// Whether some run of the two arms has the metric, will have it, or lost it by diverging.
bool is_defined(const Arm& baseline, const Arm& arm, const Metric& metric);

Differences collect_differences(const Arm& baseline, const Arm& arm, const Metric& metric,
                                const experiments::Compare& compare);

// "seed 7: ddp has no such run", of both arms; none where the arms are not paired.
std::vector<std::string> without_partner(const Arm& baseline, const Arm& arm,
                                         const experiments::Compare& compare);

// The PSNR is the mean squared error on a logarithmic scale: a change of the error by the loss's ratio, in
// dB.
double psnr_margin(const experiments::LossMargin& margin);

// Scale and margin: a small loss (baseline mean below absolute / (ratio − 1)) is compared by differences.
// Perplexities are compared by the loss's ratio, BLEU by the accuracy's points.
struct Measure {
  Scale scale = Scale::log_ratio;
  double margin = 0;
  double points = 100;  // that one unit of the metric has: 100 of a fraction, 1 of BLEU
};
Measure measure_for(const Differences& differences, const Metric& metric,
                    const experiments::Margins& margins);

// The mean difference, positive where the arm is better, and its estimate; values must be above zero on the
// logarithmic scale. An estimate needs two pairs.
double mean_difference(const Differences& differences, const Measure& measure);
Estimate estimate_of(const Differences& differences, const Measure& measure, bool paired);

}  // namespace trainyard::reports
