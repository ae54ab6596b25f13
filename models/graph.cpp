#include "models/graph.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace trainyard::models {

namespace {

// The nodes before which a value is made, and after which nobody reads it.
struct Life {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Life> lives(const Graph& graph) {
  std::vector<Life> lives(graph.values);
  std::vector<bool> read(graph.values, false);
  for (const StoredTensor& tensor : graph.tensors) lives.at(tensor.value).begin = graph.nodes.size();
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId value : graph.nodes[i].makes) lives.at(value) = {i + 1, i + 1};
    for (const ValueId value : graph.nodes[i].reads) {
      Life& life = lives.at(value);
      if (!read[value]) life.begin = std::min(life.begin, i + 1);  // a parameter
      read[value] = true;
      life.end = i + 1;
    }
  }
  for (const ValueId value : graph.outputs) lives.at(value).end = graph.nodes.size() + 1;
  return lives;
}

}  // namespace

bool makes_number(const Node& node) {
  constexpr std::array kinds{"_operator.", "torch.sym_", "aten.sym_", "aten.item."};
  return std::ranges::any_of(kinds, [&](const char* kind) { return node.kind.starts_with(kind); });
}

std::vector<ValueId> crossing(const Graph& graph, std::size_t node) {
  if (node > graph.nodes.size()) throw InternalError("a cut is beyond the graph");
  std::vector<bool> copied(graph.values, false);
  for (const StoredTensor& tensor : graph.tensors)
    copied.at(tensor.value) = tensor.role != StoredTensor::Role::parameter;
  const std::vector<Life> all = lives(graph);
  std::vector<ValueId> values;
  for (ValueId value = 0; value < graph.values; ++value)
    if (!copied[value] && all[value].begin <= node && all[value].end > node) values.push_back(value);
  return values;
}

double counted_cost(const Node& node) {
  constexpr double operations_per_byte = 4;
  return node.forward_flops + operations_per_byte * node.forward_bytes;
}

}  // namespace trainyard::models
