// Step runner: makes the training steps of a rank, whose trainer says how one is computed. The plain one
// computes each step. `replayed_steps` replays steps as CUDA graphs (cuda_graph_cache.h) if their shape comes
// again, and computes the others.
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

// Values that differ from step to step. A captured step reads them from the device, and each replay writes
// them there first.
struct StepInput {
  at::Tensor places;              // int64 [batch]: this replica's samples
  double loss_factor = 1;         // 1 / (divisor of the summed loss)
  std::int64_t number = 0;        // steps before this one; -1 in a captured step
  at::Tensor factor_on_device{};  // double []: `loss_factor` of a captured step, otherwise undefined
  at::Tensor number_on_device{};  // int64 []: `number` of a captured step, otherwise undefined

  bool captured() const { return number_on_device.defined(); }  // the step may ask the device for no value
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
    compute_(data, {local.places, 1.0 / static_cast<double>(local.divisor), number}, times);
  }
  virtual void clear() {}  // drops what was captured: the learning rate or the data has changed
  // Why steps are computed one by one, for people. Empty if they are replayed.
  virtual std::string why_not_captured() const { return why_not_captured_; }

 protected:
  Compute compute_;

 private:
  std::string why_not_captured_;
};

// Why steps of `run` are not captured, for people. Empty if they are. `transport` as in Connections.
std::string why_not_captured(const experiments::Run& run, at::Device device, const std::string& transport);

// `replicas` make each step together and must outlive it. Replays are marked in `timeline`, which may be
// nullptr.
std::unique_ptr<StepRunner> replayed_steps(StepRunner::Compute compute, MakeCudaGraph make, at::Device device,
                                           Communicator& replicas, std::shared_ptr<DeviceTimeline> timeline);

}  // namespace trainyard::runner
