// The kinds of layers, each made from its row of the catalogue; `make_layer` chooses among them by name.
// Shapes and what they do stand in `models/chain.h`.
#pragma once

#include <utility>

#include "models/networks/network.h"

namespace trainyard::networks {

// A function of the first activation alone, which it may take by value; the others pass.
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

// Local statistics, unless the context sums over replicas.
Layer batch_norm2d(const models::Layer& row, const Initialisation& start);

// see dropout.h
Layer dropout(const models::Layer& row, const Initialisation& start);

// Layers for texts.
// The mean over the words of each text, int64 [batch, length], of their rows of `weight`, without a look at
// how many words there are: on the CPU leaving padding out first is faster, a GPU would have to wait for that
// number.
at::Tensor mean_without_looking(const at::Tensor& weight, const at::Tensor& tokens);
Layer mean_embedding(const models::Layer& row, const Initialisation& start);
Layer source_embedding(const models::Layer& row, const Initialisation& start);
Layer target_embedding(const models::Layer& row, const Initialisation& start);

Layer encoder_lstm(const models::Layer& row, const Initialisation& start);
Layer decoder_lstm(const models::Layer& row, const Initialisation& start);

}  // namespace trainyard::networks
