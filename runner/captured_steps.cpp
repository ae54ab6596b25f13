#include "runner/captured_steps.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <ATen/ATen.h>

#include "models/catalogue.h"

namespace trainyard::runner {

namespace {

struct Facts {
  const experiments::Run& run;
  const models::InputShape& input;
  at::Device device;
  const std::string& transport;
};

bool has_layer(const Facts& facts, std::string_view kind) {
  const auto layers = models::find_model(facts.run.model).layers(facts.run.hyperparameters, facts.input);
  return std::ranges::any_of(layers, [&](const models::Layer& layer) { return layer.kind == kind; });
}

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
    Obstacle{[](const Facts& facts) { return has_layer(facts, "encoder_lstm"); },
             "sentences are packed by their lengths, which the host looks at"},
};

}  // namespace

std::string why_not_captured(const experiments::Run& run, const models::InputShape& input, at::Device device,
                             const std::string& transport) {
  const Facts facts{run, input, device, transport};
  const auto found = std::ranges::find_if(obstacles, [&](const Obstacle& each) { return each.there(facts); });
  return found == obstacles.end() ? "" : found->why;
}

CapturedSteps::CapturedSteps(MakeGraph make, at::Device device)
    : make_(std::move(make)),
      device_(device),
      step_number_(at::zeros({}, at::TensorOptions(device).dtype(at::kLong))) {}

bool CapturedSteps::replay(const at::Tensor& places, std::int64_t divisor, std::int64_t step,
                           const Work& work) {
  const std::pair shape{places.size(0), divisor};
  if (!failure_.empty() || shape.first == 0) return false;
  if (!by_shape_.contains(shape) && by_shape_.size() == most_shapes) return false;
  Captured& captured = by_shape_[shape];
  if (captured.seen++ < eager_steps) return false;
  if (!captured.graph && !capture(captured, places, work)) return false;
  captured.places.copy_(places, /*non_blocking=*/true);
  step_number_.fill_(step);
  captured.graph->replay();
  return true;
}

bool CapturedSteps::capture(Captured& captured, const at::Tensor& like, const Work& work) {
  if (!captured.places.defined()) captured.places = like.to(device_, at::kLong, false, /*copy=*/true);
  captured.graph = make_();
  try {
    captured.graph->capture([work, places = captured.places] { work(places); });
  } catch (const c10::Error& error) {
    failure_ = error.what_without_backtrace();
    failure_.resize(std::min(failure_.find('\n'), failure_.size()));
    forget();
    return false;
  }
  return true;
}

void CapturedSteps::forget() {
  for (auto& [shape, captured] : by_shape_) captured.graph.reset();
}

}  // namespace trainyard::runner
