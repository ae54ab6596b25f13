// What the records of a run say that can explain its result and its times: facts that the recorder observed
// (docs/explain.md), and terms. NaN: not known.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/results/report_data.h"

namespace trainyard::reports {

// A watched training step. Lists have one value per rank, or none if they were not recorded.
struct WatchedStep {
  std::int64_t step = 0;          // from 1
  std::vector<double> losses;     // given to backward(), of all passes whose gradients were kept
  std::vector<double> weights;    // samples or tokens of the loss
  std::vector<double> samples;    // of the step
  std::vector<double> backwards;  // calls of backward()
  std::vector<double> kept;       // those whose gradients zero_grad() did not discard
  std::vector<double> exchanges;  // backward passes after which DistributedDataParallel averages
  double reduction = NAN;         // gradient at the optimizer as a factor of the mean of the ranks' own ones
  double own = NAN;               // distance of that gradient from the one of rank 0 alone
  double rest = NAN;              // part of the gradient that this factor does not explain
};

// Terms of the training that no other fact has.
inline constexpr std::array compared_terms{"optimizer", "weight_decay", "beta1",     "beta2",
                                           "epsilon",   "clip_norm",    "precision", "epochs"};

// A step of a probe (docs/explain.md). Norms are relative to that of the baseline's gradient.
struct ProbedStep {
  std::vector<double> samples;  // by rank
  std::vector<double> shares;   // by rank, of its gradient in that of the baseline
  double distance = NAN;        // of the arm's gradient
  double factor = NAN;          // of the arm's gradient
  double rest = NAN;            // that the factor leaves
  double unexplained = NAN;     // that the shares leave
  double inside = NAN;          // part of the arm's gradient that is not the mean of its ranks
  double own = NAN;             // distance of the arm's gradient from that of rank 0 alone
  bool equal_weights = true;    // of the ranks of the arm
  std::string parameter;        // with the largest difference
};

struct Facts {
  bool recorded = false;  // by the recorder of the Python package
  std::size_t ranks = 0;
  std::vector<WatchedStep> steps;
  std::set<std::string> without_gradient;                // parameters at step 1
  std::set<std::string> same_in_fetch, same_in_forward;  // random generators that all ranks draw from alike
  double overlap = NAN;            // largest share of the samples of epoch 1 that two ranks have in common
  double repeated = NAN;           // share of the samples of epoch 1 that a rank had before in this epoch
  double epoch_samples = NAN;      // of epoch 1, over all ranks
  double validation_weight = NAN;  // samples or tokens of the recorded metric
  double epochs = NAN;
  double steps_made = NAN;          // of the optimizer, in all epochs
  double schedule_steps = NAN;      // of the learning-rate scheduler, in all epochs
  double batch_norm_samples = NAN;  // that share one set of statistics
  double global_batch = NAN;        // as stated
  double learning_rate = NAN;       // of the first step
  double threads = NAN;             // of a rank
  double cores = NAN;               // that rank 0 may use
  double gradient_bytes = NAN;
  bool uncleared = false;             // a step added its gradients to those of the step before it
  double train_mode_passes = NAN;     // forward passes in train() mode without gradients
  double eval_steps = NAN;            // of the optimizer, with forward passes in eval() mode
  std::string order;                  // "DistributedSampler with seed 1 of train.py:12"; empty: not known
  std::vector<double> rates;          // learning rates of the first and of the last step of each epoch
  std::optional<bool> equal_weights;  // of all ranks after each epoch
  std::optional<bool> equal_rates;    // learning rates of all ranks
  std::optional<bool> equal_data;     // the data sets of all ranks
  bool unseen_model = false;          // no forward pass of the observed model in a step
  bool repeats_order = false;         // all epochs had the same data order
  bool order_known = false;           // of two epochs at least
  std::map<std::string, std::string>
      terms;                    // those of `compared_terms`, if they are known; without clipping "none"
  std::string schedule;         // of the learning rate: "constant" or a hash; empty: not known
  std::string initial_weights;  // hashes; empty: not known
  // Medians over the timed steps, in seconds, by rank and name (docs/explain.md). Empty: not known.
  std::vector<std::map<std::string, double>> phases;

  std::vector<ProbedStep> probe;  // of a baseline that was probed

  double step_samples() const;  // of the first step, over all ranks; else the stated batch
};

Facts facts_of(const ReportData& data, const db::RunSummary& run);

}  // namespace trainyard::reports
