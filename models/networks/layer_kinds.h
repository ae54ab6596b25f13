// One function per kind of layer, which builds the layer from its row of the catalogue.
// `make_layer` (network.h) selects the function by name. `models/chain.h` documents shapes and meaning.
#pragma once

#include <utility>

#include "models/networks/network.h"

namespace trainyard::networks {

// A layer that applies `function` to the first activation and passes on the others. `function` may take its
// argument by value.
template <class Function>
auto on_first(Function function) {
  return [function = std::move(function)](Activations activations, const ForwardContext&) {
    activations.front() = function(std::move(activations.front()));
    return activations;
  };
}

Layer flatten(const models::Layer& row, const Initialisation& start);
Layer relu(const models::Layer& row, const Initialisation& start);
Layer sigmoid(const models::Layer& row, const Initialisation& start);
Layer linear(const models::Layer& row, const Initialisation& start);

// Layers for images.
Layer conv2d(const models::Layer& row, const Initialisation& start);
Layer conv_transpose2d(const models::Layer& row, const Initialisation& start);
Layer max_pool2d(const models::Layer& row, const Initialisation& start);

// Batch normalisation. The statistics are those of the input, or of all replicas if the context sums over
// replicas.
Layer batch_norm2d(const models::Layer& row, const Initialisation& start);

// See dropout.h.
Layer dropout(const models::Layer& row, const Initialisation& start);

// Layers for texts.

// The mean of the embeddings of each text, without a host–device sync for the number of words.
// `tokens` int64 [batch, length]. Used on GPUs. On a CPU it is faster to remove the padding first.
at::Tensor mean_without_sync(const at::Tensor& weight, const at::Tensor& tokens);
Layer mean_embedding(const models::Layer& row, const Initialisation& start);
Layer source_embedding(const models::Layer& row, const Initialisation& start);
Layer target_embedding(const models::Layer& row, const Initialisation& start);

Layer encoder_lstm(const models::Layer& row, const Initialisation& start);
Layer decoder_lstm(const models::Layer& row, const Initialisation& start);

}  // namespace trainyard::networks
