// Split of single layers over the ranks of a replica, called parts: tensor parallelism (Shazeer et al.,
// "Mesh-TensorFlow", 2018; Shoeybi et al., "Megatron-LM", 2019). Plain functions of the graph, without LibTorch.
//
// A layer that is split by its outputs (columns, channels, heads) makes a part of a value. Layers that work channel by
// channel pass the part on. A layer that is split by its inputs (rows) makes a part of a sum. So two split layers in a
// row exchange one sum forward and one backward. A layer between whole values is split by its outputs and gathers
// them. Embeddings are split by the rows of their vocabulary and add up, but `mean_embedding` by its columns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/graph.h"

namespace trainyard::models {

// The layers that may be split, ascending: linear layers, convolutions, attention and embeddings. Depthwise convolutions
// and normalisations of channels follow the layer before them.
std::vector<std::int64_t> splittable_layers(const Graph& graph);

struct TensorSplit {
  std::int64_t parts = 1;
  std::vector<std::int64_t> layers = {};  // those that are split, ascending
  std::int64_t batch = 128;               // samples of an exchange
};

// Names of dimensions by which layers can be split, as in Mesh-TensorFlow.
// - width: linear layers, and mean embeddings
// - channels: convolutions
// - heads: attention and the linear layers beside it
// - vocabulary: embeddings of tokens, and a last layer with the same weight
std::span<const char* const> split_dimensions();

// The layers, ascending, that have one of the dimensions with these names. UserError if no layer has one of them.
std::vector<std::int64_t> layers_with(const Graph& graph, const std::vector<std::string>& dimensions);

// The layers, ascending, whose split takes the least time for `batch` samples, and at least one.
// - The least sum of counted work / parts and of what exchanges cost, by dynamic programming over the nodes with the
//   states "the value is whole" and "the value is split".
// - UserError if no layer has a size of at least `parts`.
std::vector<std::int64_t> cheapest_split(const Graph& graph, std::int64_t parts, std::int64_t batch);

// The graph of one part, from 0. Exactly the layers of `split` are split, into parts whose sizes differ by at most one. Where
// there is a choice of how to split a layer, the cheapest one is taken. Attention may follow the layer before it.
// UserError if a layer cannot be split, or has fewer outputs, heads or tokens than parts.
Graph graph_of_part(const Graph& graph, const TensorSplit& split, std::int64_t part);

// The split for people: "1 columns, 3 rows". UserError as of `graph_of_part`.
std::string split_text(const Graph& graph, const TensorSplit& split);

}  // namespace trainyard::models
