// The virtual mesh: one process on one device computes all replicas × micro-batches in turn and sums their
// gradients. The parity check and the tests compare ranks with it.
// - Each micro-batch has its own batch statistics. Each replica starts from the running statistics of
//   replica 0. The mesh does the same, so both must train equally.
// - In float16 the loss is scaled by one fixed number, which suits the parity check.
// - It uses no executor, schedule, reducer or communicator, so that it proves them independently.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/networks/network.h"
#include "runner/data/dataset.h"
#include "runner/data/sampler.h"
#include "runner/optimizer/optimizer.h"
#include "runner/trainer/resolved_run.h"

namespace trainyard::runner {

class ReferenceTrainer {
 public:
  // `micro_batches`: parts in which each replica computes its share of a step.
  ReferenceTrainer(const ResolvedRun& resolved, const models::InputShape& input, std::int64_t replicas,
                   std::int64_t micro_batches, std::optional<at::ScalarType> dtype = {},
                   at::Device device = at::kCPU);

  // A step on the global batch of the samples `indices`, in contiguous parts. `weight` is the weight of the
  // batch. Returns its mean loss.
  double step(const Dataset& data, const at::Tensor& indices, std::int64_t weight);
  // A step on the batches of the replicas. Returns the sum of their losses.
  double step(const Dataset& data, const std::vector<LocalBatch>& local_batches);
  void set_learning_rate(double learning_rate) { optimizer_->set_learning_rate(learning_rate); }

  // Continues from these parameters and running statistics. The state of the optimizer stays.
  void load(const std::vector<networks::NamedParameter>& state) { networks::load_values(network_, state); }

  const networks::Network& network() const { return network_; }
  // The gradients of the last step, after clipping.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }

 private:
  double compute_in_turn(const Dataset& data, const std::vector<LocalBatch>& local_batches);
  double compute_together(const Dataset& data, const std::vector<LocalBatch>& local_batches);
  double compute(const Dataset& data, const std::vector<LocalBatch>& micro_batches);

  ResolvedRun resolved_;
  networks::Network network_;
  std::int64_t replicas_;
  std::int64_t micro_batches_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<at::Tensor> gradients_;
  double weight_ = 0;  // of the step, if the loss is weighted
  std::int64_t steps_done_ = 0;
};

}  // namespace trainyard::runner
