#include "runner/data/metrics.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace trainyard::runner {

MetricSums::MetricSums(const Task& task, at::Device device)
    : task_(&task),
      loss_(at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))),
      correct_(at::zeros({}, at::TensorOptions(device).dtype(at::kLong))) {}

void MetricSums::add(const at::Tensor& loss_sum, const at::Tensor& outputs, const at::Tensor& targets,
                     std::int64_t weight) {
  const at::NoGradGuard no_grad;
  loss_.add_(loss_sum);
  if (task_->correct) correct_.add_(task_->correct(outputs, targets));
  weight_ += weight;
}

void MetricSums::add(const std::string& name, std::int64_t sum, std::int64_t weight) {
  auto row =
      std::find_if(further_.begin(), further_.end(), [&](const Named& named) { return named.name == name; });
  if (row == further_.end()) row = further_.insert(row, {name, 0, 0});
  row->sum += sum;
  row->weight += weight;
}

MetricSums MetricSums::take() {
  MetricSums taken = *this;
  taken.loss_ = loss_.clone();
  taken.correct_ = correct_.clone();
  loss_.zero_();
  correct_.zero_();
  weight_ = 0;
  further_.clear();
  return taken;
}

double MetricSums::loss() const {
  return loss_.item<double>();
}

std::optional<std::int64_t> MetricSums::correct() const {
  if (!task_->correct) return std::nullopt;
  return correct_.item<std::int64_t>();
}

at::Tensor MetricSums::numbers() const {
  return at::stack({loss_, correct_.to(at::kDouble)});
}

nlohmann::ordered_json to_json(const MetricSums& sums, const std::string& phase) {
  nlohmann::ordered_json metrics = nlohmann::ordered_json::array();
  const auto add = [&](const std::string& name, const nlohmann::ordered_json& sum, std::int64_t weight) {
    metrics.push_back({{"phase", phase}, {"name", name}, {"sum", sum}, {"weight", weight}});
  };
  add("loss", sums.loss(), sums.weight());
  if (const auto correct = sums.correct()) add("correct", *correct, sums.weight());
  for (const MetricSums::Named& named : sums.further()) add(named.name, named.sum, named.weight);
  return metrics;
}

}  // namespace trainyard::runner
