// The metrics of a phase as sums, never means: each has a name, a sum and the weight that a mean of it would
// be over. Those of a step are kept in tensors, so that a step never waits for a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "runner/data/task.h"

namespace trainyard::runner {

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

}  // namespace trainyard::runner
