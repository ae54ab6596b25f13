#include "models/networks/network.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "base/named_row.h"
#include "models/networks/layer_kinds.h"

namespace trainyard::networks {

namespace {

using Parameters = std::vector<NamedParameter>;

Parameters all_of(const std::vector<Layer>& layers, Parameters Layer::*kind) {
  Parameters all;
  for (const Layer& layer : layers) all.insert(all.end(), (layer.*kind).begin(), (layer.*kind).end());
  return all;
}

}  // namespace

Activations Network::forward(const Activations& inputs, const ForwardContext& context) const {
  Activations x = inputs;
  for (const Layer& layer : layers) {
    if (context.positions.defined() && &layer == &layers.back())
      x.front() = x.front().flatten(0, 1).index_select(0, context.positions);
    x = layer.forward(std::move(x), context);
  }
  return x;
}

Parameters Network::parameters() const {
  return all_of(layers, &Layer::parameters);
}

Parameters Network::buffers() const {
  return all_of(layers, &Layer::buffers);
}

Parameters Network::state() const {
  Parameters state = parameters();
  const Parameters more = buffers();
  state.insert(state.end(), more.begin(), more.end());
  return state;
}

std::vector<at::Tensor> Network::parameter_values() const {
  return values_of(parameters());
}

std::int64_t Network::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedParameter& parameter : parameters()) count += parameter.value.numel();
  return count;
}

void load_values(const Network& network, const std::vector<NamedParameter>& values) {
  const at::NoGradGuard no_grad;
  for (const NamedParameter& to : network.state()) {
    const auto from = std::find_if(values.begin(), values.end(),
                                   [&](const NamedParameter& value) { return value.name == to.name; });
    if (from == values.end() || from->value.sizes() != to.value.sizes()) {
      throw InternalError("there is no value of the right shape for " + to.name);
    }
    at::Tensor(to.value).copy_(from->value);
  }
}

Network build_network(std::string_view model, const models::Hyperparameters& hyperparameters,
                      const models::InputShape& input, std::uint64_t seed, at::ScalarType dtype,
                      const std::optional<LayerRange>& stage, at::Device device) {
  const std::vector<models::Layer> rows = models::find_model(model).layers(hyperparameters, input);
  const LayerRange range = stage.value_or(LayerRange{0, rows.size()});
  if (range.first >= range.last || range.last > rows.size()) {
    throw InternalError("a stage cannot be layers " + std::to_string(range.first) + " to " +
                        std::to_string(range.last) + " of " + std::to_string(rows.size()));
  }
  Network network;
  network.channels_last =
      std::any_of(rows.begin(), rows.end(), [](const models::Layer& row) { return row.kind == "conv2d"; });
  for (std::size_t i = range.first; i < range.last; ++i) {
    network.layers.push_back(make_layer(rows[i], {seed, dtype, device}));
  }
  return network;
}

namespace {

struct Kind {
  std::string_view name;
  Layer (*make)(const models::Layer&, const Initialisation&);
};

constexpr std::array kinds{
    Kind{"batch_norm2d", batch_norm2d},
    Kind{"conv2d", conv2d},
    Kind{"conv_transpose2d", conv_transpose2d},
    Kind{"decoder_lstm", decoder_lstm},
    Kind{"dropout", dropout},
    Kind{"encoder_lstm", encoder_lstm},
    Kind{"flatten", flatten},
    Kind{"linear", linear},
    Kind{"max_pool2d", max_pool2d},
    Kind{"mean_embedding", mean_embedding},
    Kind{"relu", relu},
    Kind{"sigmoid", sigmoid},
    Kind{"source_embedding", source_embedding},
    Kind{"target_embedding", target_embedding},
};

}  // namespace

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

Layer make_layer(const models::Layer& row, const Initialisation& start) {
  const Kind* kind = row_or_null(kinds, &Kind::name, row.kind);
  if (kind == nullptr) throw InternalError("there is no layer of kind " + row.kind);
  return kind->make(row, start);
}

}  // namespace trainyard::networks
