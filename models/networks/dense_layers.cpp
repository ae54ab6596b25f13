#include <utility>

#include <ATen/ATen.h>

#include "models/networks/initial_weights.h"
#include "models/networks/layer_kinds.h"

namespace trainyard::networks {

Layer flatten(const models::Layer& row, const Initialisation&) {
  return {row.path, row.kind, {}, {}, on_first([](const at::Tensor& x) { return x.flatten(1); })};
}

// Overwrites its input where nobody else reads that. Never a leaf, which autograd forbids.
Layer relu(const models::Layer& row, const Initialisation&) {
  return {row.path, row.kind, {}, {}, on_first([](at::Tensor x) {
            return has_single_reader(x) && !x.is_leaf() ? at::relu_(x) : at::relu(x);
          })};
}

Layer sigmoid(const models::Layer& row, const Initialisation&) {
  return {row.path, row.kind, {}, {}, on_first([](const at::Tensor& x) { return at::sigmoid(x); })};
}

Layer linear(const models::Layer& row, const Initialisation& start) {
  const std::int64_t inputs = row.sizes.at("inputs"), outputs = row.sizes.at("outputs");
  const double bound = fan_in_bound({outputs, inputs});
  InitialWeights weights(row.path, start);
  const auto weight = weights.uniform("weight", {outputs, inputs}, bound);
  const auto bias = weights.uniform("bias", {outputs}, bound);
  return {row.path,
          row.kind,
          {weight, bias},
          {},
          on_first([w = weight.value, b = bias.value](const at::Tensor& x) { return at::linear(x, w, b); })};
}

}  // namespace trainyard::networks
