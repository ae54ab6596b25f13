#include "models/networks/network.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "models/networks/layer_parts.h"
#include "models/networks/operator_call.h"
#include "models/networks/operator_node.h"
#include "models/networks/random_stream.h"
#include "models/networks/stored_tensors.h"

namespace trainyard::networks {

namespace {

using Parameters = std::vector<NamedParameter>;

Parameters all_of(const std::vector<Layer>& layers, Parameters Layer::*kind) {
  Parameters all;
  for (const Layer& layer : layers) all.insert(all.end(), (layer.*kind).begin(), (layer.*kind).end());
  return all;
}

// Numbers the values of the stage in the order in which they appear.
class Slots {
 public:
  explicit Slots(std::size_t values) : of_(values) {}
  std::size_t add(models::ValueId value) {
    of_.at(value) = count_;
    return count_++;
  }
  bool has(models::ValueId value) const { return of_.at(value).has_value(); }
  std::size_t at(models::ValueId value) const {
    if (!of_.at(value))
      throw InternalError("a stage reads value " + std::to_string(value) + ", which it lacks");
    return *of_[value];
  }
  std::size_t count() const { return count_; }

 private:
  std::vector<std::optional<std::size_t>> of_;
  std::size_t count_ = 0;
};

// The values that the stage passes on, with what the next stages or the caller read.
std::vector<models::ValueId> passed_on(const models::Graph& graph, std::size_t last) {
  return last == graph.nodes.size() ? graph.outputs : models::crossing(graph, last);
}

std::vector<models::ValueId> received(const models::Graph& graph, std::size_t first) {
  if (first > 0) return models::crossing(graph, first);
  std::vector<models::ValueId> inputs(graph.inputs);
  std::iota(inputs.begin(), inputs.end(), models::ValueId{0});
  return inputs;
}

// Values that are numbers: sizes, and what is computed from them.
std::vector<bool> numbers_of(const models::Graph& graph) {
  std::vector<bool> numbers(graph.values, false);
  for (const models::Node& node : graph.nodes)
    if (models::makes_number(node))
      for (const models::ValueId value : node.makes) numbers.at(value) = true;
  return numbers;
}

// For convolutions of images on a CPU or a GPU, the weights have the memory order of the images.
bool is_image_weight(const models::Graph& graph, const models::StoredTensor& stored) {
  const auto reads = [&](const models::Node& node) {
    return std::ranges::find(node.reads, stored.value) != node.reads.end();
  };
  return stored.sizes.size() == 4 && std::ranges::all_of(graph.nodes, [&](const models::Node& node) {
           return !reads(node) || node.kind.starts_with("aten.conv2d.");
         });
}

// Strides of dimensions of size 1 matter, too: oneDNN takes another kernel for [outputs, inputs, 1, 1] if they are
// those of a contiguous tensor. `contiguous` leaves them as they are.
void in_channels_last(at::Tensor& weight) {
  at::Tensor copy = at::empty(weight.sizes(), weight.options().memory_format(at::MemoryFormat::ChannelsLast));
  copy.copy_(weight.detach());
  weight = copy.requires_grad_(weight.requires_grad());
}

// Replaces the stored values by those of the run's seed.
void draw(NamedParameter& tensor, const models::InitialRule& rule, const Initialisation& start) {
  const at::NoGradGuard no_grad;
  const NamedParameter drawn = InitialWeights(tensor.name, start).drawn("", tensor.value.sizes(), rule);
  tensor.value.copy_(drawn.value);
}

NamedParameter made(const models::Graph& graph, const models::StoredTensor& stored,
                    const Initialisation& start, bool channels_last) {
  NamedParameter tensor{stored.name, make_tensor(stored, start.device), stored.factors};
  if (stored.initial) draw(tensor, *stored.initial, start);
  if (channels_last && is_image_weight(graph, stored)) in_channels_last(tensor.value);
  return tensor;
}

// The first and the last node that read a value. Without a reader the first is behind the graph.
std::pair<std::size_t, std::size_t> readers(const models::Graph& graph, models::ValueId value) {
  std::pair<std::size_t, std::size_t> found{graph.nodes.size(), 0};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& reads = graph.nodes[i].reads;
    if (std::ranges::find(reads, value) == reads.end()) continue;
    found = {std::min(found.first, i), i};
  }
  return found;
}

// oneDNN computes most convolutions faster with "channels last", but not the gradients of weights that have
// several pixels: they are copied from [outputs, inputs, height, width]. So the order is not worth it if many
// such weights are used for few pixels each. The limit was measured on nine networks of PyTorch: up to a quotient
// of 30 (ResNet-18) the order is slower, and from 39 on (four convolutions with batch normalisation) it is faster.
bool is_worth_channels_last(const models::Graph& graph) {
  constexpr double fewest_operations = 35;  // multiply-adds per copied number and sample
  double operations = 0, copied = 0;
  for (const models::Node& node : graph.nodes) {
    if (!node.kind.starts_with("aten.conv2d.")) continue;
    operations += node.forward_flops / 2;
    for (const models::StoredTensor& stored : graph.tensors) {
      const bool read = std::ranges::find(node.reads, stored.value) != node.reads.end();
      if (!read || stored.sizes.size() != 4 || stored.sizes[2] * stored.sizes[3] == 1) continue;
      copied += static_cast<double>(stored.sizes[0] * stored.sizes[1] * stored.sizes[2] * stored.sizes[3]);
    }
  }
  return operations >= fewest_operations * copied;
}

bool has_kind(const models::Graph& graph, std::string_view kind) {
  return std::ranges::any_of(graph.nodes,
                             [&](const models::Node& node) { return node.kind.starts_with(kind); });
}

// Whether images have the order "channels last". `view` needs the order of the export.
bool prefers_channels_last(const models::Graph& graph) {
  if (has_kind(graph, "conv2d")) return true;
  const bool views =
      has_kind(graph, "aten.view.") || (graph.evaluation && has_kind(*graph.evaluation, "aten.view."));
  return has_kind(graph, "aten.conv2d.") && !views && is_worth_channels_last(graph);
}

std::vector<Layer> layers_of(const models::Graph& graph, const models::NodeRange& range,
                             const Initialisation& start) {
  std::vector<Layer> layers;
  for (std::size_t i = range.first; i < range.last; ++i) layers.push_back(make_layer(graph.nodes[i], start));
  return layers;
}

// The same stage in the evaluation graph. It has no nodes if only training has some there.
models::NodeRange range_in_evaluation(const models::Graph& graph, const models::NodeRange& range) {
  const auto at = [&](std::size_t node) {
    return node == graph.nodes.size() ? graph.evaluation->nodes.size() : graph.nodes[node].in_evaluation;
  };
  return {at(range.first), at(range.last)};
}

}  // namespace

Network::Network(const models::Graph& graph, const models::NodeRange& range, std::vector<Layer> layers,
                 const Initialisation& start, const Network* training)
    : channels_last(prefers_channels_last(graph)),
      layers_(std::move(layers)),
      selects_outputs_(graph.exported() || training != nullptr) {
  Slots slots(graph.values);
  const std::vector<bool> numbers = numbers_of(graph);
  for (const models::ValueId value : received(graph, range.first)) {
    inputs_.push_back(slots.add(value));
    number_inputs_.push_back(numbers.at(value));
  }
  for (const models::StoredTensor& stored : graph.tensors) {
    const auto [first, last] = readers(graph, stored.value);
    if (last < range.first || first >= range.last || slots.has(stored.value)) continue;
    const NamedParameter* shared = training == nullptr ? nullptr : training->held(stored);
    NamedParameter tensor = shared != nullptr ? *shared : made(graph, stored, start, channels_last);
    auto& holder = tensor.value.requires_grad()                                                 ? parameters_
                   : stored.role == models::StoredTensor::Role::constant || first < range.first ? constants_
                                                                                                : buffers_;
    const ParameterUse use{std::max(first, range.first) - range.first,
                           first == last && !may_share_memory(graph.nodes[first])};
    holder.push_back({slots.add(stored.value), std::move(tensor), use});
  }
  for (std::size_t i = range.first; i < range.last; ++i) {
    const models::Node& node = graph.nodes.at(i);
    Wiring& wiring = wiring_.emplace_back();
    for (const models::ValueId value : node.reads) wiring.reads.push_back({slots.at(value)});
    for (const models::ValueId value : node.makes) wiring.makes.emplace_back(slots.add(value));
  }
  for (const models::ValueId value : passed_on(graph, range.last)) outputs_.push_back(slots.at(value));
  slots_ = slots.count();
  std::vector<bool> read_later(slots_, false);
  for (const std::size_t slot : outputs_) read_later[slot] = true;
  for (auto wiring = wiring_.rbegin(); wiring != wiring_.rend(); ++wiring) {
    for (std::optional<std::size_t>& slot : wiring->makes)
      if (!read_later[*slot]) slot.reset();
    for (auto read = wiring->reads.rbegin(); read != wiring->reads.rend(); ++read) {
      read->last = !read_later[read->slot];
      read_later[read->slot] = true;
    }
  }
  if (!graph.evaluation) return;
  const models::NodeRange nodes = range_in_evaluation(graph, range);
  evaluation_ = std::make_shared<const Network>(*graph.evaluation, nodes,
                                                layers_of(*graph.evaluation, nodes, start), start, this);
}

// The parameter or buffer with this name. Null if there is none: constants of other graphs have the same names.
const NamedParameter* Network::held(const models::StoredTensor& stored) const {
  if (stored.role == models::StoredTensor::Role::constant) return nullptr;
  for (const std::vector<Held>* held : {&parameters_, &buffers_, &constants_})
    for (const Held& each : *held)
      if (each.tensor.name == stored.name) return &each.tensor;
  return nullptr;
}

Activations Network::forward(const Activations& inputs, const ForwardContext& context) const {
  if (evaluation_ && !context.training) return evaluation_->forward(inputs, context);
  if (inputs.size() != inputs_.size())
    throw InternalError("a stage reads " + std::to_string(inputs_.size()) + " values, but has got " +
                        std::to_string(inputs.size()));
  Activations values(slots_);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    values[inputs_[i]] = number_inputs_[i] ? number_tensor(inputs[i].item()) : inputs[i];
  for (const std::vector<Held>* held : {&parameters_, &buffers_, &constants_})
    for (const Held& each : *held) values[each.slot] = each.tensor.value;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Wiring& wiring = wiring_[i];
    Activations read;
    read.reserve(wiring.reads.size());
    for (const auto& [slot, last] : wiring.reads)
      read.push_back(last ? std::move(values[slot]) : values[slot]);
    if (context.positions.defined() && !selects_outputs_ && i + 1 == layers_.size())
      read.front() = read.front().flatten(0, 1).index_select(0, context.positions);
    if (context.before_layer) context.before_layer(i);
    Activations made = layers_[i].forward(std::move(read), context);
    if (context.after_layer) context.after_layer(i, made);
    for (std::size_t k = 0; k < wiring.makes.size(); ++k)
      if (wiring.makes[k]) values[*wiring.makes[k]] = std::move(made.at(k));
  }
  Activations outputs;
  outputs.reserve(outputs_.size());
  for (const std::size_t slot : outputs_) outputs.push_back(values[slot]);
  if (context.positions.defined() && selects_outputs_)
    outputs.front() = outputs.front().flatten(0, 1).index_select(0, context.positions);
  return outputs;
}

Parameters Network::parameters() const {
  Parameters all = all_of(layers_, &Layer::parameters);
  for (const Held& held : parameters_) all.push_back(held.tensor);
  return all;
}

Parameters Network::buffers() const {
  Parameters all = all_of(layers_, &Layer::buffers);
  for (const Held& held : buffers_) all.push_back(held.tensor);
  return all;
}

Parameters Network::state() const {
  Parameters state = parameters();
  const Parameters more = buffers();
  state.insert(state.end(), more.begin(), more.end());
  return state;
}

std::vector<models::GroupFactors> Network::parameter_factors() const {
  std::vector<models::GroupFactors> factors;
  for (const NamedParameter& parameter : parameters()) factors.push_back(parameter.factors);
  return factors;
}

std::int64_t Network::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedParameter& parameter : parameters()) count += parameter.value.numel();
  return count;
}

std::vector<ParameterUse> Network::parameter_uses() const {
  std::vector<ParameterUse> uses;
  for (std::size_t i = 0; i < layers_.size(); ++i)
    uses.insert(uses.end(), layers_[i].parameters.size(), {i, !layers_[i].passes_parameters});
  for (const Held& held : parameters_) uses.push_back(held.use);
  return uses;
}

bool take_value(const NamedParameter& to, const std::vector<NamedParameter>& values) {
  const auto from = std::ranges::find(values, to.name, &NamedParameter::name);
  if (from == values.end()) return false;
  const bool is_whole = to.cut && from->value.sizes().vec() == whole_sizes(to.value, *to.cut);
  const at::Tensor value = is_whole ? part_of(from->value, *to.cut) : from->value;
  if (value.sizes() != to.value.sizes()) return false;
  const at::NoGradGuard no_grad;
  at::Tensor(to.value).copy_(value);
  return true;
}

void load_values(const Network& network, const std::vector<NamedParameter>& values) {
  for (const NamedParameter& to : network.state())
    if (!take_value(to, values)) throw InternalError("there is no value of the right shape for " + to.name);
}

Network build_network(const models::Graph& graph, const Initialisation& start,
                      const std::optional<models::NodeRange>& stage) {
  const models::NodeRange range = stage.value_or(models::NodeRange{0, graph.nodes.size()});
  if (range.first >= range.last || range.last > graph.nodes.size()) {
    throw InternalError("a stage cannot be nodes " + std::to_string(range.first) + " to " +
                        std::to_string(range.last) + " of " + std::to_string(graph.nodes.size()));
  }
  for (const models::StoredTensor& stored : graph.tensors)
    if (at::isFloatingType(scalar_type(stored.dtype)) && stored.requires_grad &&
        scalar_type(stored.dtype) != start.dtype)
      throw UserError(stored.name + " of the exported network has another type than the run",
                      "export the network in float32");
  return {graph, range, layers_of(graph, range, start), start};
}

std::vector<at::Tensor> values_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> values;
  values.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) values.push_back(parameter.value);
  return values;
}

bool has_single_reader(const at::Tensor& value) {
  return value.use_count() == 1 && value.has_storage() && value.storage().use_count() == 1 &&
         value.is_non_overlapping_and_dense();
}

}  // namespace trainyard::networks
