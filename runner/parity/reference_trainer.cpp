#include "runner/parity/reference_trainer.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "models/networks/libtorch_private.h"
#include "runner/data/task.h"
#include "runner/device/precision.h"
#include "runner/gradients/clipping.h"
#include "runner/gradients/sparse_gradient.h"

namespace trainyard::runner {

namespace {

at::Tensor part_of_indices(const at::Tensor& indices, std::int64_t part, std::int64_t parts) {
  const Part cut = part_of({0, indices.size(0)}, part, parts);
  return indices.slice(0, cut.begin, cut.end);
}

at::Tensor all_indices(const std::vector<LocalBatch>& batches) {
  std::vector<at::Tensor> indices;
  for (const LocalBatch& batch : batches) indices.push_back(batch.indices);
  return at::cat(indices);
}

std::vector<at::Tensor> copies(const std::vector<networks::NamedParameter>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const auto& tensor : tensors) copies.push_back(tensor.value.detach().clone());
  return copies;
}

void assign(const std::vector<networks::NamedParameter>& tensors, const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values.size(); ++i) at::Tensor(tensors[i].value).copy_(values[i]);
}

}  // namespace

ReferenceTrainer::ReferenceTrainer(const ResolvedRun& resolved, const models::InputShape& input,
                                   std::int64_t replicas, std::int64_t micro_batches,
                                   std::optional<at::ScalarType> dtype, at::Device device)
    : resolved_(resolved),
      network_(first_network(resolved, input,
                             {resolved.run.seed, dtype.value_or(resolved.precision.parameters), device})),
      replicas_(replicas),
      micro_batches_(micro_batches),
      optimizer_(make_optimizer(
          resolved.run.optimizer, network_.parameter_values(),
          group_factors(resolved.run.optimizer, network_.parameter_values(), network_.parameter_factors()))) {
}

double ReferenceTrainer::step(const Dataset& data, const at::Tensor& indices, std::int64_t weight) {
  std::vector<LocalBatch> local_batches;
  for (std::int64_t replica = 0; replica < replicas_; ++replica)
    local_batches.push_back({part_of_indices(indices, replica, replicas_), weight});
  return step(data, local_batches);
}

double ReferenceTrainer::step(const Dataset& unpadded, const std::vector<LocalBatch>& local_batches) {
  const auto padded = unpadded.in_step(all_indices(local_batches));
  const Dataset& data = padded ? *padded : unpadded;
  for (const auto& parameter : network_.parameters()) at::Tensor(parameter.value).mutable_grad().reset();
  weight_ = 0;
  double loss = resolved_.run.batch_norm == "sync" ? compute_together(data, local_batches)
                                                   : compute_in_turn(data, local_batches);
  gradients_.clear();
  for (const auto& parameter : network_.parameters()) gradients_.push_back(coalesced(parameter.value.grad()));
  if (resolved_.task.own_loss.is_weighted()) {
    libtorch::divide_each(numbers_of(gradients_), weight_);
    loss /= weight_;
  }
  if (const double scale = resolved_.precision.probed_loss_scale(); scale != 1)
    libtorch::divide_each(numbers_of(gradients_), scale);
  if (resolved_.run.optimizer.clip_norm > 0)
    clip_gradients(gradients_, resolved_.run.optimizer.clip_norm, [](double squares) { return squares; });
  optimizer_->step(gradients_);
  ++steps_done_;
  return loss;
}

double ReferenceTrainer::compute_in_turn(const Dataset& data, const std::vector<LocalBatch>& local_batches) {
  const std::vector<at::Tensor> before = copies(network_.buffers());
  std::vector<at::Tensor> of_first;
  double loss = 0;
  for (const LocalBatch& local : local_batches) {
    assign(network_.buffers(), before);
    for (std::int64_t m = 0; m < micro_batches_; ++m)
      loss += compute(data, {{part_of_indices(local.indices, m, micro_batches_), local.divisor}});
    if (of_first.empty()) of_first = copies(network_.buffers());
  }
  assign(network_.buffers(), of_first);
  return loss;
}

// With synchronised statistics, the m-th micro-batches of all replicas form one batch.
double ReferenceTrainer::compute_together(const Dataset& data, const std::vector<LocalBatch>& local_batches) {
  double loss = 0;
  for (std::int64_t m = 0; m < micro_batches_; ++m) {
    std::vector<LocalBatch> parts;
    parts.reserve(local_batches.size());
    for (const LocalBatch& local : local_batches)
      parts.push_back({part_of_indices(local.indices, m, micro_batches_), local.divisor});
    loss += compute(data, parts);
  }
  return loss;
}

// One forward and backward on all of `micro_batches`; returns the sum of their losses.
double ReferenceTrainer::compute(const Dataset& data, const std::vector<LocalBatch>& micro_batches) {
  const at::Tensor all = all_indices(micro_batches);
  if (all.size(0) == 0) return 0;
  const Batch batch = data.for_network(all);
  const networks::ForwardContext context{.training = true,
                                         .seed = resolved_.run.seed,
                                         .step = steps_done_,
                                         .samples = batch.samples,
                                         .sum_over_replicas = {}};
  networks::Activations outputs = forward_in(resolved_.precision, network_, batch.inputs, context);
  std::ranges::transform(outputs, outputs.begin(), for_loss);
  at::Tensor loss = at::zeros({}, outputs.front().options());
  std::int64_t begin = 0;
  for (const LocalBatch& part : micro_batches) {
    const std::int64_t end = begin + part.indices.size(0);
    networks::Activations of_part;
    for (const at::Tensor& output : outputs) of_part.push_back(output.slice(0, begin, end));
    if (end > begin)
      loss = loss + resolved_.task.sum_of(of_part, batch.targets.slice(0, begin, end)) /
                        (resolved_.task.own_loss.is_weighted() ? 1.0 : static_cast<double>(part.divisor));
    begin = end;
  }
  if (resolved_.task.own_loss.is_weighted()) weight_ += resolved_.task.weight_of(outputs).item<double>();
  const double whole =
      resolved_.task.own_loss.is_sum() ? static_cast<double>(micro_batches.front().divisor) : 1;
  (loss * resolved_.precision.probed_loss_scale() * whole).backward();
  return loss.item<double>();
}

}  // namespace trainyard::runner
