#include "runner/trainer/step_runner.h"

#include <ATen/ATen.h>

#include "runner/optimizer/optimizer.h"
#include "runner/trainer/cuda_graph_cache.h"

namespace trainyard::runner {

namespace {

class ReplayedSteps final : public StepRunner {
 public:
  ReplayedSteps(Compute compute, MakeCudaGraph make, at::Device device, Communicator& replicas,
                std::shared_ptr<DeviceTimeline> timeline)
      : StepRunner(std::move(compute)),
        replicas_(replicas),
        timeline_(std::move(timeline)),
        graphs_(std::move(make), device, replicas) {}

  void run(const Dataset& data, const LocalBatch& local, std::int64_t number, StepTimes& times) override {
    const auto padded = data.padded_like(local.global_batch);
    const Dataset& batches = padded ? *padded : data;
    if (replay(batches, padded, local, number, times)) return;
    StepRunner::run(batches, local, number, times);
  }
  void clear() override { graphs_.clear(); }
  std::string why_not_captured() const override { return graphs_.failure(); }

 private:
  // False if the step must be computed. `owner` keeps `data` alive while a graph may read it.
  bool replay(const Dataset& data, const std::shared_ptr<const Dataset>& owner, const LocalBatch& local,
              std::int64_t number, StepTimes& times) {
    const bool all_have_some = local.global_batch.size(0) >= replicas_.size();
    if (data.gathers_on_host() || !all_have_some) return false;
    PartWatch watch(times);
    const auto work = [this, &data, owner](const at::Tensor& indices,
                                           const std::shared_ptr<PartMarks>& marks) {
      StepTimes inside;
      inside.device = marks;
      compute_(data, {indices, 1, -1, graphs_.loss_factor(), graphs_.step_number()}, inside);
    };
    return graphs_.replay({data.shape(local.global_batch), local.indices, local.divisor, number}, work,
                          timeline_.get());
  }

  Communicator& replicas_;
  std::shared_ptr<DeviceTimeline> timeline_;
  CudaGraphCache graphs_;
};

}  // namespace

at::Tensor StepInput::part_of_mean(const at::Tensor& loss_sum) const {
  return captured() ? loss_sum * factor_on_device.to(loss_sum.scalar_type()) : loss_sum * loss_factor;
}

std::string why_not_captured(const experiments::Run& run, at::Device device, const std::string& transport) {
  if (!device.is_cuda()) return "the device is not a GPU";
  if (run.exported) return "operators of an exported network may need the host";
  if (run.optimizer.warmup_steps > 0 || find_schedule(run.optimizer.schedule).by_step)
    return "the learning rate changes from step to step";
  if (run.strategy.servers > 0) return "servers exchange messages with the host";
  if (!run.strategy.sharding.empty()) return "slices of the parameters are gathered within a step";
  if (run.strategy.stages > 1) return "stages exchange messages within a step";
  if (run.strategy.tensor > 1) return "parts exchange sums within a step";
  const bool through_host = transport != "none" && transport != "nccl";
  return through_host ? "gradients are sent through the host" : "";
}

std::unique_ptr<StepRunner> replayed_steps(StepRunner::Compute compute, MakeCudaGraph make, at::Device device,
                                           Communicator& replicas, std::shared_ptr<DeviceTimeline> timeline) {
  return std::make_unique<ReplayedSteps>(std::move(compute), std::move(make), device, replicas,
                                         std::move(timeline));
}

}  // namespace trainyard::runner
