// Tasks: loss, metrics, the number of correct predictions, and BLEU.
//
// What a model is trained for, as a table: the loss of a batch as a sum, never a mean, and what counts as
// correct.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

namespace trainyard::runner {

enum class Target { label, input, next_token };

struct Task {
  std::string_view name;  // "classification", as in the catalogue
  Target target;          // what the output is held against

  // [], differentiable: the sum over what the task weighs (samples, non-padding tokens, pixels).
  at::Tensor (*loss_sum)(const at::Tensor& outputs, const at::Tensor& targets);
  // int64 []: how many of these are predicted right; nullptr where accuracy is not defined.
  at::Tensor (*correct)(const at::Tensor& outputs, const at::Tensor& targets);
  // int64 [positions]: those of the flattened targets that weigh anything; nullptr where all do. The
  // functions above give the same for outputs and targets at these positions only.
  at::Tensor (*positions)(const at::Tensor& targets);
};

// classification: cross entropy of logits [batch, classes] against labels int64 [batch], a sample weighs 1.
// reconstruction: squared error of [batch, channel, height, width] against images of that shape, a pixel of a
// channel weighs 1. translation: cross entropy of logits [batch, tokens, vocabulary] against tokens int64
// [batch, tokens], where a token weighs 1 and padding (0) nothing.
//
// UserError for an unknown name, with those that exist.
const Task& find_task(std::string_view name);

// The metrics of a phase as sums, never means: each has a name, a sum and the weight that a mean of it would
// be over. Those of a step are kept in tensors, so that a step never waits for a value.

class MetricSums {
 public:
  explicit MetricSums(const Task& task, at::Device device = at::kCPU);

  // Adds a batch: its summed loss, and what the task counts in `outputs` against `targets`; `weight` is the
  // batch's, which may also be added by `count`.
  void add(const at::Tensor& loss_sum, const at::Tensor& outputs, const at::Tensor& targets,
           std::int64_t weight = 0);
  void count(std::int64_t weight) { weight_ += weight; }
  // Adds to a metric that the task alone does not give, such as "bleu_4".
  void add(const std::string& name, std::int64_t sum, std::int64_t weight);

  // All so far; it goes on from zeros in the same memory, which replayed steps know.
  MetricSums take();

  double loss() const;                          // Σ; NaN or infinite where the run diverged
  std::optional<std::int64_t> correct() const;  // Σ; nothing where accuracy is not defined
  std::int64_t weight() const { return weight_; }
  bool counts_correct() const { return task_->correct != nullptr; }
  at::Tensor numbers() const;  // {loss, correct} as they are by now: float64 [2], where they are added up

  struct Named {
    std::string name;
    std::int64_t sum = 0;
    std::int64_t weight = 0;
  };
  const std::vector<Named>& further() const { return further_; }

 private:
  const Task* task_;
  at::Tensor loss_;     // float64 []
  at::Tensor correct_;  // int64 []
  std::int64_t weight_ = 0;
  std::vector<Named> further_;
};

// [{phase, name, sum, weight}] for `loss`, `correct` where it is defined, and all others, as records carry
// it.
nlohmann::ordered_json to_json(const MetricSums& sums, const std::string& phase);

// How many answers are right, counted in one pass over the logits.

// int64 []: of how many rows of `logits`, [..., classes], the first of the largest numbers is at the row's
// answer, int64 [...]. Rows whose answer is `ignored` do not count; other answers must be classes.
//
// What logits.argmax(-1).eq(answers) says, for all numbers but NaN. On a CPU LibTorch's argmax takes about
// ten times as long as the numbers take to be read: it keeps a place for each, and only whether one place
// wins is asked here.
at::Tensor count_correct(const at::Tensor& logits, const at::Tensor& answers, std::int64_t ignored = -1);

// BLEU (Papineni et al. 2002) of a corpus against one reference a sentence, as sums that add up over
// sentences and ranks. The score is derived from them: BP · exp(Σ ln(matched_n / candidates_n) / 4), with the
// brevity penalty BP = min(1, exp(1 − reference length / candidate length)).

struct BleuSums {
  std::array<std::int64_t, 4> matched{};  // n-grams of candidates that their reference has too, n = 1 … 4,
                                          // each at most as often as there
  std::array<std::int64_t, 4> candidates{};  // n-grams of candidates
  std::int64_t candidate_length = 0;         // tokens
  std::int64_t reference_length = 0;         // tokens

  // Both without <bos>, <eos> and padding. <unk> matches nothing: it is no word that a reader could use.
  void add(std::span<const std::int64_t> candidate, std::span<const std::int64_t> reference);
};

}  // namespace trainyard::runner
