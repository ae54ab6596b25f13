#include "runner/training/seen_sums.h"

#include <utility>

#include <ATen/ATen.h>

namespace trainyard::runner {

SeenSums seen(const MetricSums& sums) {
  return {sums.loss(), sums.correct(), sums.weight()};
}

SumsOnTheirWay::SumsOnTheirWay(at::Device device, MakeMark make) : device_(device), make_(std::move(make)) {}

void SumsOnTheirWay::begin() {
  arrived_.reset();
  forgotten_ = mark_ != nullptr;
}

std::optional<SeenSums> SumsOnTheirWay::look(const MetricSums& sums) {
  if (device_.is_cpu() && !make_) return seen(sums);
  if (mark_ && mark_->passed()) {
    const auto* numbers = arriving_.const_data_ptr<double>();
    const auto correct = static_cast<std::int64_t>(numbers[1]);
    if (!std::exchange(forgotten_, false))
      arrived_ = {numbers[0], sums.counts_correct() ? std::optional(correct) : std::nullopt, weight_};
    mark_.reset();
  }
  if (!mark_) send(sums);
  return arrived_;
}

void SumsOnTheirWay::send(const MetricSums& sums) {
  if (!arriving_.defined())  // in memory that a GPU writes by itself
    arriving_ = at::empty({2}, at::TensorOptions(at::kDouble).pinned_memory(device_.is_cuda()));
  arriving_.copy_(sums.numbers(), /*non_blocking=*/true);
  weight_ = sums.weight();
  mark_ = make_();
}

}  // namespace trainyard::runner
