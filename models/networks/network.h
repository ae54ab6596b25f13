// A graph as single-device LibTorch code: all its nodes, or the consecutive nodes of a pipeline stage.
// `runner` adds the parallelism. This code has no processes or ranks.
//
// Inputs and outputs:
//   images, classification  {images [batch, channel, height, width]}        → {logits [batch, classes]}
//   texts, classification   {tokens [batch, length], int64, 0 is padding}   → {logits [batch, classes]}
//   reconstruction          {images [batch, channel, height, width]}        → {images [batch, channel, …]}
//   translation             {source [batch, length], target [batch, steps]} → {logits [batch, steps, tokens]}
//   language-model          {tokens [batch, length]}                         → {logits [batch, length, tokens]}
// The target of a translation has no last token. If ForwardContext has positions, the logits are [positions,
// tokens].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/graph.h"

namespace trainyard::networks {

// Values: those that a layer reads or makes, or those that cross a cut between stages.
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
  // Called around each layer of the training graph with its index, if they are set. A layer reads its parameters
  // between these calls, and in its backward pass.
  std::function<void(std::size_t layer)> before_layer = {};
  std::function<void(std::size_t layer, const Activations& made)> after_layer = {};
  // Exchanges between the parts of split layers (models/tensor_split.h). Every part calls them in the same order. They
  // are set if the graph is that of a part.
  // - The sum over all parts. Its gradient, which all parts have, is passed on.
  std::function<at::Tensor(const at::Tensor&)> sum_over_parts = {};
  // - The value itself, which all parts have. Its gradient is the sum over all parts.
  std::function<at::Tensor(const at::Tensor&)> copy_to_parts = {};
};

struct NamedParameter {
  std::string name;  // layer path and role: "1.weight"
  at::Tensor value;  // a parameter is a leaf that requires a gradient; a buffer is not
  models::GroupFactors factors = {};
  std::optional<models::Cut> cut = {};  // of the whole tensor, if the value is a part of it
};

std::vector<at::Tensor> values_of(const std::vector<NamedParameter>& parameters);

// The layers that read a parameter.
struct ParameterUse {
  std::size_t layer = 0;  // the first layer that reads it
  bool only = true;       // no other layer reads its memory, neither itself nor a view of it
};

// A node of the graph.
struct Layer {
  std::string path;  // "0", "1", …
  std::string kind;  // as in the graph: "linear", "relu", …
  std::vector<NamedParameter> parameters;
  std::vector<NamedParameter> buffers;  // running statistics, changed by the forward pass in training
  // From the values that the node reads to those that it makes. If the caller moves the inputs,
  // `forward(std::move(inputs), context)`, the layer may overwrite a tensor that has no other reader
  // (`has_single_reader`).
  std::function<Activations(Activations, const ForwardContext&)> forward;
  bool passes_parameters = false;  // a value that it makes has the memory of a parameter
};

// Whether only the caller, who got `value` by value, can read its memory. Then an in-place operator is
// allowed. False if another tensor shares the memory: a value that a later node reads, a view, or a tensor
// that was saved for a backward pass.
bool has_single_reader(const at::Tensor& value);

// Seed, type and device of parameters. They are always drawn on the CPU, so that they are the same on every
// device.
struct Initialisation {
  std::uint64_t seed = 0;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  at::TensorOptions options() const { return at::TensorOptions(dtype).device(device); }
};

// The layer that `node` describes, with its initial parameters. They have the distributions of PyTorch and are
// drawn from the stream "weights/seed/path".
Layer make_layer(const models::Node& node, const Initialisation& start);

// The nodes `range` of a graph, ready to compute.
class Network {
 public:
  // `training`: the network of the same stage, whose parameters and buffers this one has too, if it has such
  // names. They are not copied.
  Network(const models::Graph& graph, const models::NodeRange& range, std::vector<Layer> layers,
          const Initialisation& start = {}, const Network* training = nullptr);

  // `inputs`: the inputs of the graph, or of a later stage the values that cross the cut before it. Returns the
  // outputs of the graph, or of an earlier stage the values that cross the cut after it. See `crossing`.
  // - A value is released after its last reader.
  // - In evaluation, the evaluation graph is computed if the graph has one. Other values may cross its cuts.
  Activations forward(const Activations& inputs, const ForwardContext& context = {}) const;

  const std::vector<Layer>& layers() const { return layers_; }
  // In the order of the layers. A parameter that several stages read is only in the first of them.
  std::vector<NamedParameter> parameters() const;
  std::vector<NamedParameter> buffers() const;
  std::vector<NamedParameter> state() const;  // the parameters, then the buffers
  std::vector<at::Tensor> parameter_values() const { return values_of(parameters()); }
  std::vector<models::GroupFactors> parameter_factors() const;  // in the same order
  std::int64_t parameter_count() const;
  std::vector<ParameterUse> parameter_uses() const;  // in the order of `parameters`

  bool channels_last = false;  // the fastest memory order for images; other orders also work

 private:
  struct Read {
    std::size_t slot = 0;
    bool last = false;  // nobody reads the value afterwards
  };
  struct Wiring {
    std::vector<Read> reads;
    std::vector<std::optional<std::size_t>> makes;  // slots; empty if nobody reads the value
  };

  std::vector<Layer> layers_;
  std::vector<Wiring> wiring_;                 // per layer
  std::vector<std::size_t> inputs_, outputs_;  // slots
  std::size_t slots_ = 0;
  // The tensors that every forward pass of an exported graph begins with.
  struct Held {
    std::size_t slot = 0;
    NamedParameter tensor;
    ParameterUse use = {};
  };
  std::vector<Held> parameters_, buffers_, constants_;
  const NamedParameter* held(const models::StoredTensor& stored) const;
  std::vector<bool> number_inputs_;            // per input: a number, not a tensor
  bool selects_outputs_ = false;               // `positions` of the context select rows of the output
  std::shared_ptr<const Network> evaluation_;  // of the evaluation graph; null if there is none
};

// Copy the value with the same name into `to`, or of a whole tensor its part. False if there is none, or if it has
// another shape.
bool take_value(const NamedParameter& to, const std::vector<NamedParameter>& values);

// Copy values into the parameters and buffers with the same names.
// - InternalError if a parameter or buffer has no value, or a value of another shape.
// - Values with other names, such as those of another stage, are ignored.
void load_values(const Network& network, const std::vector<NamedParameter>& values);

// Build the network of `graph`, or of one `stage` of it, on `device`.
// - The initial weights are a pure function of (seed, layer path): the same on every rank, in every split
//   into stages and on every device.
// - InternalError if the stage is empty or not within the graph.
Network build_network(const models::Graph& graph, const Initialisation& start,
                      const std::optional<models::NodeRange>& stage = {});

}  // namespace trainyard::networks
