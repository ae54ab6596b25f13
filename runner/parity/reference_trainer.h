// The virtual mesh: one process does on one device what replicas × micro-batches do, in turn, and sums the
// gradients. Each micro-batch sees its own batch statistics and each replica starts from the running
// statistics of replica 0, as in the mesh; so the mesh must train exactly as this does. In float16 its loss
// is scaled by one number, which suits the gate. Written without executor, schedule, reducer or communicator.
// The parity gate and the tests hold ranks against it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "experiments/run/run.h"
#include "models/networks/network.h"
#include "runner/data/dataset.h"
#include "runner/data/sampler.h"
#include "runner/optimizer/optimizer.h"

namespace trainyard::runner {

class ReferenceTrainer {
 public:
  // `micro_batches`: parts in which each replica computes its share of a step.
  ReferenceTrainer(const experiments::Run& run, const models::InputShape& input, std::int64_t replicas,
                   std::int64_t micro_batches, at::ScalarType dtype = at::kFloat,
                   at::Device device = at::kCPU);

  // A step on the global batch at `places`, of weight `weight`, in contiguous parts; returns its mean loss.
  double step(const Dataset& data, const at::Tensor& places, std::int64_t weight);
  // The same on what each replica takes of it; returns the sum of their losses.
  double step(const Dataset& data, const std::vector<LocalBatch>& local_batches);
  void set_learning_rate(double learning_rate) { optimizer_->set_learning_rate(learning_rate); }

  // Goes on from these parameters and running statistics; its optimizer remembers what it has seen.
  void load(const std::vector<networks::NamedParameter>& state) { networks::load_values(network_, state); }

  const networks::Network& network() const { return network_; }
  // Of the last step, clipped where the run says so.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }

 private:
  double compute_in_turn(const Dataset& data, const std::vector<LocalBatch>& local_batches);
  double compute_together(const Dataset& data, const std::vector<LocalBatch>& local_batches);
  double compute(const Dataset& data, const std::vector<LocalBatch>& micro_batches);

  experiments::Run run_;
  networks::Network network_;
  std::int64_t replicas_;
  std::int64_t micro_batches_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<at::Tensor> gradients_;
  std::int64_t steps_done_ = 0;
};

}  // namespace trainyard::runner
