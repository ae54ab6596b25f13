// One function per kind of layer, which builds the layer from its node of the graph.
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

Layer flatten(const models::Node& row, const Initialisation& start);
Layer relu(const models::Node& row, const Initialisation& start);
Layer relu6(const models::Node& row, const Initialisation& start);
Layer gelu(const models::Node& row, const Initialisation& start);
Layer sigmoid(const models::Node& row, const Initialisation& start);
Layer linear(const models::Node& row, const Initialisation& start);
Layer add(const models::Node& row, const Initialisation& start);

// Layers for images.
Layer conv2d(const models::Node& row, const Initialisation& start);
Layer conv_transpose2d(const models::Node& row, const Initialisation& start);
Layer max_pool2d(const models::Node& row, const Initialisation& start);
Layer image_mean(const models::Node& row, const Initialisation& start);

// Batch normalisation. The statistics are those of the input, or of all replicas if the context sums over
// replicas.
Layer batch_norm2d(const models::Node& row, const Initialisation& start);

// See dropout.h.
Layer dropout(const models::Node& row, const Initialisation& start);

// Layers for texts.

// The mean of the embeddings of each text, without a host–device sync for the number of words.
// `tokens` int64 [batch, length]. Used on GPUs. On a CPU it is faster to remove the padding first.
at::Tensor mean_without_sync(const at::Tensor& weight, const at::Tensor& tokens);
Layer mean_embedding(const models::Node& row, const Initialisation& start);
Layer source_embedding(const models::Node& row, const Initialisation& start);
Layer target_embedding(const models::Node& row, const Initialisation& start);

Layer encoder_lstm(const models::Node& row, const Initialisation& start);
Layer decoder_lstm(const models::Node& row, const Initialisation& start);

// Layers of language models, in language_model_layers.cpp.
Layer token_embedding(const models::Node& row, const Initialisation& start);
Layer layer_norm(const models::Node& row, const Initialisation& start);
Layer causal_attention(const models::Node& row, const Initialisation& start);
Layer tied_linear(const models::Node& row, const Initialisation& start);

}  // namespace trainyard::networks
