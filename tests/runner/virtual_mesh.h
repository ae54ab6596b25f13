// The virtual mesh: one process does on one device what replicas × micro-batches do, in turn, and sums the
// gradients. Each micro-batch sees its own batch statistics and each replica starts from the running
// statistics of replica 0, as in the mesh; so the mesh must train exactly as this does. Written without
// executor, schedule, reducer or communicator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "experiments/run.h"
#include "models/networks/network.h"
#include "runner/optimizer.h"
#include "runner/split_data.h"

namespace trainyard::runner::testing {

class VirtualMesh {
 public:
  VirtualMesh(const experiments::Run& run, const models::InputShape& input, std::int64_t replicas,
              std::int64_t micro_batches, at::ScalarType dtype);

  // A step on the global batch at `places`, of weight `weight`; returns its mean loss.
  double step(const SplitData& data, const at::Tensor& places, std::int64_t weight);

  const networks::Network& network() const { return network_; }
  const std::vector<at::Tensor>& gradients() const { return gradients_; }  // of the last step

 private:
  double compute(const SplitData& data, const at::Tensor& places, std::int64_t weight);

  experiments::Run run_;
  networks::Network network_;
  std::int64_t replicas_;
  std::int64_t micro_batches_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<at::Tensor> gradients_;
  std::int64_t steps_done_ = 0;
};

}  // namespace trainyard::runner::testing
