// A model of the catalogue as single-device code: its chain of layers, or the run of consecutive layers that
// a stage of a pipeline holds. Knows nothing of processes, ranks and devices; `runner` applies parallelism
// from outside.
//
// What a network takes and gives, by the model's task and data:
//   classification of images  {images [batch, channel, height, width]}        → {logits [batch, classes]}
//   classification of texts   {tokens [batch, length], int64, 0 is padding}   → {logits [batch, classes]}
//   reconstruction            {images [batch, channel, height, width]}        → {images, of the same shape}
//   translation               {source [batch, length], target [batch, steps]} → {logits [batch, steps,
//   tokens]}
//                             where `target` is the translation without its last token
//                             ({logits [positions, tokens]} where ForwardContext names positions)
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

// The layers that networks are chained from: each is made from what the catalogue says of it, owns its
// parameters, and is a function from tensors to tensors.
//
// Layers pass on `Activations`, one or more tensors. A layer works on the first, unless `models/chain.h` says
// otherwise, and passes the others on; integer tensors among them (tokens, lengths) have no gradient. A layer
// may pass on a tensor several times, as a skip connection does.

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

struct Network {
  std::vector<Layer> layers;
  bool channels_last = false;  // the memory order it takes images in fastest; any order is right

  Activations forward(const Activations& inputs, const ForwardContext& context = {}) const;
  std::vector<NamedParameter> parameters() const;  // in the order of the layers
  std::vector<NamedParameter> buffers() const;
  std::vector<NamedParameter> state() const;  // the parameters, then the buffers
  std::vector<at::Tensor> parameter_values() const;
  std::int64_t parameter_count() const;
};

// Copies the values of the same names into the network's parameters and buffers. InternalError where one is
// missing or has another shape; what the network has not (another stage's) is passed over.
void load_values(const Network& network, const std::vector<NamedParameter>& values);

// Layers first … last − 1 of a chain.
struct LayerRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

// Builds `model` with `hyperparameters` (complete, see the catalogue), or the `stage` of it, on `device`. Its
// weights are a pure function of (seed, layer path): the same in every rank, under every cut and on every
// device. UserError for a name that the catalogue has not, InternalError for a stage that is empty or goes
// beyond the chain.
Network build_network(std::string_view model, const models::Hyperparameters& hyperparameters,
                      const models::InputShape& input, std::uint64_t seed, at::ScalarType dtype = at::kFloat,
                      const std::optional<LayerRange>& stage = {}, at::Device device = at::kCPU);

}  // namespace trainyard::networks
