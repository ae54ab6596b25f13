#include "tests/runner/virtual_mesh.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "models/catalogue.h"
#include "runner/sampler.h"
#include "runner/task.h"

namespace trainyard::runner::testing {

namespace {

at::Tensor part_of_places(const at::Tensor& places, std::int64_t part, std::int64_t parts) {
  const Part cut = part_of({0, places.size(0)}, part, parts);
  return places.slice(0, cut.begin, cut.end);
}

std::vector<at::Tensor> copies(const std::vector<networks::NamedParameter>& tensors) {
  std::vector<at::Tensor> copies;
  for (const auto& tensor : tensors) copies.push_back(tensor.value.detach().clone());
  return copies;
}

void assign(const std::vector<networks::NamedParameter>& tensors, const std::vector<at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values.size(); ++i) at::Tensor(tensors[i].value).copy_(values[i]);
}

std::vector<at::Tensor> values_of(const networks::Network& network) {
  std::vector<at::Tensor> values;
  for (const auto& parameter : network.parameters()) values.push_back(parameter.value);
  return values;
}

}  // namespace

VirtualMesh::VirtualMesh(const experiments::Run& run, const models::InputShape& input, std::int64_t replicas,
                         std::int64_t micro_batches, at::ScalarType dtype)
    : run_(run),
      network_(networks::build_network(run.model, run.hyperparameters, input, run.seed, dtype)),
      replicas_(replicas),
      micro_batches_(micro_batches),
      optimizer_(make_optimizer(run.optimizer, values_of(network_))) {
  at::set_num_threads(1);  // as ranks have; more only wait for one another in tensors this small
}

double VirtualMesh::step(const SplitData& data, const at::Tensor& places, std::int64_t weight) {
  for (const auto& parameter : network_.parameters()) at::Tensor(parameter.value).mutable_grad().reset();
  const std::vector<at::Tensor> before = copies(network_.buffers());
  std::vector<at::Tensor> of_first;
  double loss = 0;
  for (std::int64_t replica = 0; replica < replicas_; ++replica) {
    assign(network_.buffers(), before);
    const at::Tensor own = part_of_places(places, replica, replicas_);
    for (std::int64_t m = 0; m < micro_batches_; ++m) {
      const at::Tensor micro_batch = part_of_places(own, m, micro_batches_);
      if (micro_batch.size(0) > 0) loss += compute(data, micro_batch, weight);
    }
    if (replica == 0) of_first = copies(network_.buffers());
  }
  assign(network_.buffers(), of_first);
  gradients_.clear();
  for (const auto& parameter : network_.parameters()) gradients_.push_back(parameter.value.grad());
  optimizer_->step(gradients_);
  ++steps_done_;
  return loss;
}

double VirtualMesh::compute(const SplitData& data, const at::Tensor& places, std::int64_t weight) {
  const Task& task = find_task(models::find_model(run_.model).task);
  const Batch batch = data.gather(places);
  const networks::ForwardContext context{.training = true,
                                         .seed = run_.seed,
                                         .step = steps_done_,
                                         .samples = batch.samples,
                                         .sum_over_replicas = {}};
  const at::Tensor outputs = network_.forward(batch.inputs, context).front();
  const at::Tensor loss = task.loss_sum(outputs, batch.targets) / static_cast<double>(weight);
  loss.backward();
  return loss.item<double>();
}

}  // namespace trainyard::runner::testing
