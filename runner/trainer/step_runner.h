// Step runner: makes the training steps of a rank. `StepRunner` computes each step with a function of the
// trainer. `replayed_steps` replays steps with repeated shapes as CUDA graphs (cuda_graph_cache.h) and
// computes the others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "experiments/run/run.h"
#include "runner/communicator/communicator.h"
#include "runner/data/dataset.h"
#include "runner/data/sampler.h"
#include "runner/device/gpu.h"
#include "runner/device/step_times.h"

namespace trainyard::runner {

// Values that differ between steps. A captured step reads them from the device. Each replay writes them there
// first.
struct StepInput {
  at::Tensor indices;             // int64 [batch]: sample indices of this replica
  double loss_factor = 1;         // 1 / (divisor of the summed loss)
  std::int64_t number = 0;        // number of steps before this one; -1 in a captured step
  at::Tensor factor_on_device{};  // double []: `loss_factor` of a captured step, otherwise undefined
  at::Tensor number_on_device{};  // int64 []: `number` of a captured step, otherwise undefined

  bool captured() const { return number_on_device.defined(); }  // true: no host–device synchronisation
  at::Tensor part_of_mean(const at::Tensor& loss_sum) const;    // loss_sum · loss_factor
};

class StepRunner {
 public:
  // Computes a step. It marks or measures its parts in `times`.
  using Compute = std::function<void(const Dataset& data, const StepInput& input, StepTimes& times)>;

  explicit StepRunner(Compute compute, std::string why_not_captured = "")
      : compute_(std::move(compute)), why_not_captured_(std::move(why_not_captured)) {}
  virtual ~StepRunner() = default;
  // Makes step `number` with this replica's part of the batch, which may be empty. Collective.
  virtual void run(const Dataset& data, const LocalBatch& local, std::int64_t number, StepTimes& times) {
    const auto padded = data.in_step(local.global_batch);
    compute_(padded ? *padded : data, {local.indices, 1.0 / static_cast<double>(local.divisor), number},
             times);
  }
  virtual void clear() {}  // drops all captured steps; call it if the learning rate or the data has changed
  // Reason why steps are not replayed, for people. Empty if they are.
  virtual std::string why_not_captured() const { return why_not_captured_; }

 protected:
  Compute compute_;

 private:
  std::string why_not_captured_;
};

// Reason why steps of `run` are not captured, for people. Empty if they are. `transport` as in Connections.
std::string why_not_captured(const experiments::Run& run, at::Device device, const std::string& transport);

// Step runner with CUDA graphs. `replicas` make each step together, and must outlive it. `timeline` marks the
// replays, and may be nullptr.
std::unique_ptr<StepRunner> replayed_steps(StepRunner::Compute compute, MakeCudaGraph make, at::Device device,
                                           Communicator& replicas, std::shared_ptr<DeviceTimeline> timeline);

}  // namespace trainyard::runner
