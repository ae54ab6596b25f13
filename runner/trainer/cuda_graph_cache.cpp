#include "runner/trainer/cuda_graph_cache.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "runner/communicator/process_groups.h"

namespace trainyard::runner {

namespace {

// Never empty.
std::string failure_text(const std::exception& error) {
  const std::string line = what_torch_says(error);
  return line.empty() ? "the capture failed" : line;
}

}  // namespace

CudaGraphCache::CudaGraphCache(MakeCudaGraph make, at::Device device, Communicator& replicas)
    : make_(std::move(make)),
      device_(device),
      replicas_(replicas),
      step_number_(at::zeros({}, at::TensorOptions(device).dtype(at::kLong))),
      loss_factor_(at::ones({}, at::TensorOptions(device).dtype(at::kDouble))) {}

bool CudaGraphCache::replay(const Step& step, const Work& work, DeviceTimeline* timeline) {
  if (!failure_.empty()) return false;
  Captured& captured = by_shape_[step.shape];
  if (captured.seen++ < eager_steps) return false;
  if (!captured.graph &&
      (graphs() == most_graphs || !capture(captured, step.indices, work, timeline != nullptr)))
    return false;
  captured.indices.copy_(step.indices, /*non_blocking=*/true);
  step_number_.fill_(step.number);
  loss_factor_.fill_(1.0 / static_cast<double>(step.divisor));
  captured.graph->replay();
  if (timeline) timeline->mark_replay(captured.marks);
  return true;
}

std::size_t CudaGraphCache::graphs() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(by_shape_, [](const auto& each) { return each.second.graph != nullptr; }));
}

// All replicas get the same result: if one of them fails, all return false.
bool CudaGraphCache::capture(Captured& captured, const at::Tensor& like, const Work& work, bool marked) {
  failure_ = try_capture(captured, like, work, marked);
  if (holds_on_all(replicas_, failure_.empty())) return true;
  if (failure_.empty()) failure_ = "the capture failed on another rank";
  clear();  // before `renew`, because graphs may contain work of the old group
  replicas_.renew();
  return false;
}

std::string CudaGraphCache::try_capture(Captured& captured, const at::Tensor& like, const Work& work,
                                        bool marked) {
  try {
    if (!captured.indices.defined()) captured.indices = like.to(device_, at::kLong, false, /*copy=*/true);
    captured.graph = make_();
    if (marked)
      captured.marks =
          std::make_shared<ReplayedMarks>([graph = captured.graph.get()] { return graph->mark(); });
    captured.graph->capture(
        [work, indices = captured.indices, marks = captured.marks] { work(indices, marks); });
    return "";
  } catch (const c10::Error& error) {
    return failure_text(error);
  } catch (const CommunicationError& error) {
    return failure_text(error);
  }
}

void CudaGraphCache::clear() {
  for (auto& [shape, captured] : by_shape_) {
    captured.graph.reset();
    captured.marks.reset();
  }
}

}  // namespace trainyard::runner
