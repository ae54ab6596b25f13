// Layers that layer_kinds.cpp does not define itself: functions that build a layer from its node of the graph.
// `make_layer` (network.h) selects the function by name. `models/chain.h` documents shapes and meaning.
#pragma once

#include <utility>

#include "models/networks/network.h"

namespace trainyard::networks {

// A layer that reads one value and makes one. `function` may take its argument by value.
template <class Function>
auto of_one_value(Function function) {
  return [function = std::move(function)](Activations values, const ForwardContext&) {
    values.front() = function(std::move(values.front()));
    return values;
  };
}

// See dropout.h.
Layer dropout(const models::Node& row, const Initialisation& start);

// Layers of language models, in language_model_layers.cpp.
Layer token_embedding(const models::Node& row, const Initialisation& start);
Layer layer_norm(const models::Node& row, const Initialisation& start);
Layer causal_attention(const models::Node& row, const Initialisation& start);
Layer tied_linear(const models::Node& row, const Initialisation& start);

// The mean of the embeddings of each text, without a host–device sync for the number of words.
// `tokens` int64 [batch, length]. Used on GPUs. On a CPU it is faster to remove the padding first.
at::Tensor mean_without_sync(const at::Tensor& weight, const at::Tensor& tokens);

}  // namespace trainyard::networks
