// Tasks: what a model is trained for, as a table. A row has the loss of a batch and what is counted in it:
// sums, never means. Then the sums of a phase, the number of correct predictions, and BLEU.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "models/tasks.h"

namespace trainyard::runner {

using models::Target;

// What is summed over a batch for a metric's record, such as the "correct" predictions.
struct Count {
  std::string_view record;  // as in models/metrics.h
  // [], of all outputs of the network
  std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const at::Tensor& targets)> of;
  at::ScalarType type = at::kLong;  // of the sum, or at::kDouble
};

struct Task {
  std::string_view name;  // "classification": a row of models/tasks.h

  // [], differentiable: the sum over what the task weighs (samples, non-padding tokens, pixels).
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> loss_sum;
  // A first one of integers gives the accuracy that `status` shows. Empty if the task counts nothing.
  std::vector<Count> counts;
  // int64 [positions]: those of the flattened targets that have a weight; nullptr if all have one. The
  // functions above give the same for outputs and targets at these positions only.
  at::Tensor (*positions)(const at::Tensor& targets);
  // The loss of an exported network that computes it: its second output has the values of the samples. If the loss
  // is weighted, the third has their weights. The last ones are parts of the loss.
  models::OwnLoss own_loss = {};

  Target target() const { return models::find_task(name).target; }  // what the output is compared with

  // The loss of all outputs of a network, summed: its own, or `loss_sum` of the first.
  at::Tensor sum_of(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) const;
  at::Tensor weight_of(const std::vector<at::Tensor>& outputs) const;  // double []: of the own loss
};

// classification: cross entropy of logits [batch, classes] against labels int64 [batch], a sample weighs 1.
// regression: squared error of [batch, 1] against numbers [batch], a sample weighs 1.
// reconstruction: squared error of [batch, channel, height, width] against images of that shape, a pixel of a
// channel weighs 1. translation: cross entropy of logits [batch, tokens, vocabulary] against tokens int64
// [batch, tokens]; a token weighs 1 and padding (0) nothing. language-model: the same, without padding.
//
// UserError for an unknown name; it lists the tasks.
const Task& find_task(std::string_view name);

// The task of a network with its own loss. `data_task` has its targets.
const Task& task_with_own_loss(std::string_view data_task, const models::OwnLoss& loss);

// The metrics of a phase as sums, never means: each has a name, a sum and the weight to divide it by. Sums of
// steps are in tensors, so that a step never waits for a value.
class MetricSums {
 public:
  // `task` must outlive this and its copies.
  explicit MetricSums(const Task& task, at::Device device = at::kCPU);

  // Adds a batch: its summed loss, and what the task counts in `outputs` and `targets`. The batch's `weight`
  // may also be added by `count`.
  void add(const at::Tensor& loss_sum, const std::vector<at::Tensor>& outputs, const at::Tensor& targets,
           std::int64_t weight = 0);
  void count(std::int64_t weight) { weight_ += weight; }
  // Adds to a metric that the task alone does not give, such as "bleu_4".
  void add(const std::string& name, double sum, std::int64_t weight);

  // Returns the sums so far and sets these to zero, in the same memory: CUDA graphs have its addresses.
  MetricSums take();

  double loss() const { return loss_.item<double>(); }  // Σ; NaN or infinite if the run diverged
  std::int64_t weight() const { return weight_; }
  // The weight of the loss: the same, or Σ of the weights that the network computes.
  double loss_weight() const;
  bool has_own_weight() const { return task_->own_loss.is_weighted(); }
  // Σ of the task's first count; empty if it has none, or no integer.
  std::optional<std::int64_t> correct() const;
  bool counts_correct() const { return !counts_.empty() && task_->counts.front().type == at::kLong; }
  // {loss, first count or 0} as they are by now: float64 [2], on their device. Divide both by `weight`.
  at::Tensor numbers() const;

  struct Named {
    std::string name;
    double sum = 0;
    std::int64_t weight = 0;
  };
  // What the task counts, in the order of its row: numbers, integers or not.
  std::vector<std::pair<std::string_view, nlohmann::ordered_json>> counts() const;
  const std::vector<Named>& further() const { return further_; }

 private:
  const Task* task_;
  at::Tensor loss_;                 // float64 []
  at::Tensor loss_weight_;          // float64 [], of a task that is weighted
  std::vector<at::Tensor> counts_;  // [] each, as the task's
  std::int64_t weight_ = 0;
  std::vector<Named> further_;
};

// [{phase, name, sum, weight}] for the loss, the counts and the others, as in records.
nlohmann::ordered_json to_json(const MetricSums& sums, const std::string& phase);

// The number of correct predictions, int64 [], in one pass over `logits`, [..., classes].
// - A row is correct if the first of its largest numbers is at the row's answer, int64 [...].
// - Rows whose answer is `ignored` do not count. Other answers must be classes.
// - The result equals logits.argmax(-1).eq(answers).sum(), except for NaN. LibTorch's argmax on a CPU takes
//   about ten times as long as reading the numbers.
at::Tensor count_correct(const at::Tensor& logits, const at::Tensor& answers, std::int64_t ignored = -1);

// BLEU (Papineni et al. 2002) of a corpus with one reference per sentence, as sums over sentences and ranks.
// The score is BP · exp(Σ ln(matched_n / candidates_n) / 4), with the brevity penalty
// BP = min(1, exp(1 − reference length / candidate length)).
struct BleuSums {
  // n-grams of candidates, n = 1 … 4: those that the reference has too (each at most as often as the
  // reference has it), and all.
  std::array<std::int64_t, 4> matched{};
  std::array<std::int64_t, 4> candidates{};
  std::int64_t candidate_length = 0;  // tokens
  std::int64_t reference_length = 0;  // tokens

  // Both without <bos>, <eos> and padding. <unk> matches nothing, because a reader cannot use it.
  void add(std::span<const std::int64_t> candidate, std::span<const std::int64_t> reference);
};

}  // namespace trainyard::runner
