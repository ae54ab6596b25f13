// A model as single-device LibTorch code: all its layers, or the consecutive layers of a pipeline stage.
// `runner` adds the parallelism. This code has no processes or ranks.
//
// Inputs and outputs:
//   images, classification  {images [batch, channel, height, width]}        → {logits [batch, classes]}
//   texts, classification   {tokens [batch, length], int64, 0 is padding}   → {logits [batch, classes]}
//   reconstruction          {images [batch, channel, height, width]}        → {images [batch, channel, …]}
//   translation             {source [batch, length], target [batch, steps]} → {logits [batch, steps, tokens]}
// The target of a translation has no last token. If ForwardContext has positions, the logits are [positions,
// tokens].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/catalogue.h"

namespace trainyard::networks {

// The tensors that one layer passes to the next.
// - A layer processes the first tensor and passes on the others, unless `models/chain.h` says otherwise.
// - A layer may pass on a tensor several times, as a skip connection does.
// - Integer tensors (tokens, lengths) have no gradient.
using Activations = std::vector<at::Tensor>;

// Everything that a layer may depend on, except its input and its parameters.
struct ForwardContext {
  bool training = true;
  std::uint64_t seed = 0;  // seed of the run, for dropout
  std::int64_t step = 0;   // training step, for dropout
  at::Tensor samples;  // int64 [batch], on any device: the number of each sample in its data set, for dropout
  at::Tensor step_on_device = {};  // int64 []: replaces `step` in a CUDA graph, if it is defined
  // int64 [positions], indices into batch · steps. If it is defined, the last layer is applied to these
  // positions only and its output is [positions, …]. A translation leaves out padding in this way.
  at::Tensor positions = {};
  // Differentiable sum over all replicas. Every replica calls it in the same order. If it is set, batch
  // normalisation uses the statistics of all replicas.
  std::function<at::Tensor(const at::Tensor&)> sum_over_replicas;
};

struct NamedParameter {
  std::string name;  // layer path and role: "1.weight"
  at::Tensor value;  // a parameter is a leaf that requires a gradient; a buffer is not
};

std::vector<at::Tensor> values_of(const std::vector<NamedParameter>& parameters);

struct Layer {
  std::string path;  // "0", "1", …
  std::string kind;  // as in the catalogue: "linear", "relu", …
  std::vector<NamedParameter> parameters;
  std::vector<NamedParameter> buffers;  // running statistics, changed by the forward pass in training
  // If the caller moves the inputs, `forward(std::move(inputs), context)`, the layer may overwrite a tensor
  // that has no other reader (`has_single_reader`).
  std::function<Activations(Activations, const ForwardContext&)> forward;
};

// Whether only the caller, who got `value` by value, can read its memory. Then an in-place operator is
// allowed. False if another tensor shares the memory: a skip connection, a view, or a tensor that was saved
// for a backward pass.
bool has_single_reader(const at::Tensor& value);

// Seed, type and device of parameters. They are always drawn on the CPU, so that they are the same on every
// device.
struct Initialisation {
  std::uint64_t seed = 0;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  at::TensorOptions options() const { return at::TensorOptions(dtype).device(device); }
};

// The layer that `row` describes, with its initial parameters. They have the distributions of PyTorch and are
// drawn from the stream "weights/seed/path".
Layer make_layer(const models::Layer& row, const Initialisation& start);

struct Network {
  std::vector<Layer> layers;
  bool channels_last = false;  // the fastest memory order for images; other orders also work

  Activations forward(const Activations& inputs, const ForwardContext& context = {}) const;
  std::vector<NamedParameter> parameters() const;  // in the order of the layers
  std::vector<NamedParameter> buffers() const;
  std::vector<NamedParameter> state() const;  // the parameters, then the buffers
  std::vector<at::Tensor> parameter_values() const;
  std::int64_t parameter_count() const;
};

// Copy values into the parameters and buffers with the same names.
// - InternalError if a parameter or buffer has no value, or a value of another shape.
// - Values with other names, such as those of another stage, are ignored.
void load_values(const Network& network, const std::vector<NamedParameter>& values);

// Layers first … last − 1 of a chain.
struct LayerRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

// Build `model`, or one `stage` of it, on `device`.
// - The initial weights are a pure function of (seed, layer path): the same on every rank, in every split
//   into stages and on every device.
// - UserError if there is no such model. InternalError if the stage is empty or not within the model.
Network build_network(std::string_view model, const models::Hyperparameters& hyperparameters,
                      const models::InputShape& input, std::uint64_t seed, at::ScalarType dtype = at::kFloat,
                      const std::optional<LayerRange>& stage = {}, at::Device device = at::kCPU);

}  // namespace trainyard::networks
