#include "runner/trainer/step_runner.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "runner/trainer/cuda_graph_cache.h"

namespace trainyard::runner {

namespace {

struct Facts {
  const experiments::Run& run;
  at::Device device;
  const std::string& transport;
};

struct Obstacle {
  bool (*there)(const Facts&);
  const char* why;
};

constexpr std::array obstacles{
    Obstacle{[](const Facts& facts) { return !facts.device.is_cuda(); }, "the device is no GPU"},
    Obstacle{[](const Facts& facts) { return facts.run.strategy.stages > 1; },
             "stages exchange messages within a step"},
    Obstacle{[](const Facts& facts) { return facts.transport != "none" && facts.transport != "nccl"; },
             "gradients travel through the host"},
};

class ComputedSteps final : public StepRunner {
 public:
  ComputedSteps(Compute compute, std::string why_not_captured)
      : compute_(std::move(compute)), why_not_captured_(std::move(why_not_captured)) {}
  void run(const Dataset& data, const Share& share, std::int64_t number, StepTimes& times) override {
    compute_(data, {share.places, 1.0 / static_cast<double>(share.divisor), number}, times);
  }
  void clear() override {}
  std::string why_not_captured() const override { return why_not_captured_; }

 private:
  Compute compute_;
  std::string why_not_captured_;
};

class ReplayedSteps final : public StepRunner {
 public:
  ReplayedSteps(Compute compute, MakeCudaGraph make, at::Device device, Communicator& replicas,
                std::shared_ptr<DeviceTimeline> timeline)
      : compute_(std::move(compute)),
        replicas_(replicas),
        timeline_(std::move(timeline)),
        graphs_(std::move(make), device, replicas) {}

  void run(const Dataset& data, const Share& share, std::int64_t number, StepTimes& times) override {
    const auto padded = data.padded_like(share.batch);
    const Dataset& batches = padded ? *padded : data;
    if (replay(batches, padded, share, number, times)) return;
    compute_(batches, {share.places, 1.0 / static_cast<double>(share.divisor), number}, times);
  }
  void clear() override { graphs_.clear(); }
  std::string why_not_captured() const override { return graphs_.failure(); }

 private:
  // False if the step must be computed. `owner` keeps `data` for as long as a graph may read it.
  bool replay(const Dataset& data, const std::shared_ptr<const Dataset>& owner, const Share& share,
              std::int64_t number, StepTimes& times) {
    const bool all_have_some = share.batch.size(0) >= replicas_.size();
    if (data.gathers_on_host() || !all_have_some) return false;
    PartWatch watch(times);
    const auto work = [this, &data, owner](const at::Tensor& places,
                                           const std::shared_ptr<PartMarks>& marks) {
      StepTimes inside;
      inside.device = marks;
      compute_(data, {places, 1, -1, graphs_.loss_factor(), graphs_.step_number()}, inside);
    };
    return graphs_.replay({data.shape(share.batch), share.places, share.divisor, number}, work,
                          timeline_.get());
  }

  Compute compute_;
  Communicator& replicas_;
  std::shared_ptr<DeviceTimeline> timeline_;
  CudaGraphCache graphs_;
};

}  // namespace

at::Tensor StepInput::part_of_mean(const at::Tensor& loss_sum) const {
  return captured() ? loss_sum * factor_on_device.to(loss_sum.scalar_type()) : loss_sum * loss_factor;
}

std::string why_not_captured(const experiments::Run& run, at::Device device, const std::string& transport) {
  const Facts facts{run, device, transport};
  const auto found = std::ranges::find_if(obstacles, [&](const Obstacle& each) { return each.there(facts); });
  return found == obstacles.end() ? "" : found->why;
}

std::unique_ptr<StepRunner> computed_steps(StepRunner::Compute compute, std::string why_not_captured) {
  return std::make_unique<ComputedSteps>(std::move(compute), std::move(why_not_captured));
}

std::unique_ptr<StepRunner> replayed_steps(StepRunner::Compute compute, MakeCudaGraph make, at::Device device,
                                           Communicator& replicas, std::shared_ptr<DeviceTimeline> timeline) {
  return std::make_unique<ReplayedSteps>(std::move(compute), std::move(make), device, replicas,
                                         std::move(timeline));
}

}  // namespace trainyard::runner
