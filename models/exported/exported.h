// Reads networks that `trainyard export` wrote with PyTorch (`.pt2` files), without LibTorch, Python or pickles.
// - The file may be hostile. Whatever it has, the reader ends with a graph or a UserError, within limits of memory.
// - Sizes of values within the graph are what the file says. Only stored tensors are checked against their bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/graph.h"
#include "models/tasks.h"

namespace trainyard::models {

inline constexpr std::int64_t batch_size = -1;  // a size that is the number of samples of a batch
inline constexpr std::int64_t any_size = -2;    // another symbolic size

// A network in training form, as PyTorch exports it. `graph.evaluation` is its form in evaluation.
struct Exported {
  // Tensors that no node reads are left out. Tied parameters are one tensor, with the first of their names.
  // The output is the first one of the network. With a loss of its own, the others are [batch]: its values,
  // their weights if it is "weighted", and its parts.
  Graph graph;
  // An input of the user, or an output of the graph.
  struct Input {
    std::string name;
    Dtype dtype = Dtype::float32;
    std::vector<std::int64_t> sizes = {};  // items, `batch_size` or `any_size`
  };
  std::vector<Input> inputs;   // in the order of the values 0 … inputs − 1
  std::vector<Input> outputs;  // in the order of `graph.outputs`
  std::string torch;           // version of PyTorch that wrote the file; may be empty
  std::string task;            // of the metadata; may be empty
  OwnLoss own_loss;            // of the metadata: with a loss, its last input is the targets
  std::string reference;       // of the metadata: the entry with the reference batch; may be empty
  std::string metadata;  // `extra/trainyard.json`: an object as JSON, at most 1 MiB; empty if there is none
};

// - Supported: schema 8 of torch.export, dense tensors, the operators of `operators.h`.
// - The file has two graphs. They share parameters and buffers, and each has its own constants.
// - The file has at most 2 GiB, and 100,000 nodes per graph. It is not compressed.
// UserError in one line: the file, the node and what is wrong or not supported, with advice.
Exported read_exported(const std::filesystem::path& path);

// The content of an entry of the archive, for example of `Exported::reference`.
// UserError if the file is damaged or has no such entry.
std::string read_exported_entry(const std::filesystem::path& path, const std::string& name);

}  // namespace trainyard::models
