// The layers that networks are chained from: each is made from what the catalogue says of it, owns its
// parameters, and is a function from tensors to tensors.
//
// Layers pass on `Activations`, one or more tensors. A layer works on the first, unless `models/chain.h` says
// otherwise, and passes the others on; integer tensors among them (tokens, lengths) have no gradient. A layer
// may pass on a tensor several times, as a skip connection does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/catalogue.h"

namespace trainyard::networks {

using Activations = std::vector<at::Tensor>;

// What a layer may depend on besides its input and its parameters.
struct ForwardContext {
  bool training = true;
  std::uint64_t seed = 0;  // of the run, for dropout
  std::int64_t step = 0;   // of the training, for dropout
  at::Tensor samples;  // int64 [batch], on any device: the number of each sample in its data set, for dropout
  at::Tensor step_on_device = {};  // int64 []: where it is defined, what `step` says and may change unseen
  // int64 [positions], of batch · steps: where it is defined, the network's last layer is applied to these
  // only and gives [positions, …]: of a translation those that are not padding.
  at::Tensor positions = {};
  // The sum over all replicas, differentiable, called by every replica in the same order. Where it is set,
  // batch normalisation uses the statistics of all replicas' samples.
  std::function<at::Tensor(const at::Tensor&)> sum_over_replicas;
};

struct NamedParameter {
  std::string name;  // layer path and role: "1.weight"
  at::Tensor value;  // a leaf that requires its gradient; a buffer does not
};

std::vector<at::Tensor> values_of(const std::vector<NamedParameter>& parameters);

struct Layer {
  std::string path;  // "0", "1", …
  std::string kind;  // as in the catalogue: "linear", "relu", …
  std::vector<NamedParameter> parameters;
  std::vector<NamedParameter>
      buffers;  // running statistics: part of the state, changed by training's forward
  // A caller that gives inputs away, `forward(std::move(inputs), context)`, reads them no more: a layer may
  // then overwrite what nobody else holds either (`has_single_reader`).
  std::function<Activations(Activations, const ForwardContext&)> forward;
};

// Whether nobody can read `value` but who asks and was given it by value: no other tensor shares its numbers,
// as a skip connection, a view, or what a layer before it keeps for its backward pass. Decided by what holds
// the numbers, not by what a model says of itself: an operator in place is right only here.
bool has_single_reader(const at::Tensor& value);

// What parameters are drawn from and stored as. They are drawn on the CPU, whatever the device: the same
// everywhere.
struct Initialisation {
  std::uint64_t seed = 0;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  at::TensorOptions options() const { return at::TensorOptions(dtype).device(device); }
};

// The layer that `row` describes, its parameters at their first values: as PyTorch initialises the same
// layer, drawn from the stream "weights/seed/path".
Layer make_layer(const models::Layer& row, const Initialisation& start);

}  // namespace trainyard::networks
