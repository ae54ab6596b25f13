#include "models/exported/cuts.h"

#include <algorithm>
#include <numeric>

#include "models/exported/operators.h"
#include "models/exported/tensors.h"

namespace trainyard::models::pt2 {

namespace {

// Sets of values that may share memory.
class Memories {
 public:
  explicit Memories(std::size_t values) : parents_(values) {
    std::iota(parents_.begin(), parents_.end(), ValueId{0});
  }

  ValueId of(ValueId value) {
    while (parents_[value] != value) value = parents_[value] = parents_[parents_[value]];
    return value;
  }
  void join(ValueId one, ValueId other) { parents_[of(one)] = of(other); }

 private:
  std::vector<ValueId> parents_;
};

std::vector<ValueId> overwritten(const Node& node, const Operator& called) {
  std::vector<ValueId> values;
  if (called.writes.empty()) return values;
  for (const Argument& argument : node.arguments) {
    if (!overwrites(called, argument.name)) continue;
    const auto some = reads_of(node, &argument);
    values.insert(values.end(), some.begin(), some.end());
  }
  return values;
}

struct Uses {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t last_write = 0;
  bool used = false;
  bool written = false;
  bool everywhere = false;  // each stage has it
};

// How often something holds at each node: intervals are added by their ends.
class Intervals {
 public:
  explicit Intervals(std::size_t nodes) : changes_(nodes + 2, 0) {}
  // Nodes first … last. An empty interval if first > last.
  void add(std::size_t first, std::size_t last) {
    if (first > last) return;
    ++changes_[first];
    --changes_[last + 1];
  }
  std::vector<std::int64_t> counts() const {
    std::vector<std::int64_t> counts(changes_.size());
    std::partial_sum(changes_.begin(), changes_.end(), counts.begin());
    return counts;
  }

 private:
  std::vector<std::int64_t> changes_;
};

Memories shared_memories(const Graph& graph) {
  Memories memories(graph.values);
  for (const Node& node : graph.nodes) {
    const Operator& called = *find_operator(node.kind);
    auto shared = overwritten(node, called);
    if (called.may_share && !node.arguments.empty()) {
      const auto first = reads_of(node, &node.arguments.front());
      shared.insert(shared.end(), first.begin(), first.end());
    }
    if (shared.empty() || node.makes.empty()) continue;
    // batch_norm overwrites its statistics and returns new memory
    if (!called.may_share && find_argument(node, "running_mean") != nullptr) continue;
    for (const ValueId value : shared) memories.join(value, node.makes.front());
    for (const ValueId value : node.makes) memories.join(value, node.makes.front());
  }
  return memories;
}

// Fault if a tensor that is overwritten is a parameter, or if it or a parameter has bytes of another tensor.
void check_overwritten(const Graph& graph, Memories& memories, const std::vector<Uses>& uses) {
  std::vector<const StoredTensor*> changed;
  for (const StoredTensor& tensor : graph.tensors) {
    const bool written = uses[memories.of(tensor.value)].written;
    if (written && tensor.role == StoredTensor::Role::parameter)
      throw Fault("the parameter " + in_quotes(tensor.name) + " is overwritten in the forward pass",
                  "clone it before an operation in place, or make it a buffer");
    if (written || tensor.requires_grad) changed.push_back(&tensor);
  }
  check_own_memory(graph.tensors, changed);
}

// Nodes at which no stage may begin, because memory would be overwritten.
Intervals overwriting(const Graph& graph) {
  Memories memories = shared_memories(graph);
  std::vector<Uses> uses(graph.values);
  for (ValueId input = 0; input < graph.inputs; ++input) uses[memories.of(input)].everywhere = true;
  for (const StoredTensor& tensor : graph.tensors) uses[memories.of(tensor.value)].everywhere = true;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto use = [&](ValueId value) {
      Uses& memory = uses[memories.of(value)];
      if (!memory.used) memory.first = i;
      memory.used = true;
      memory.last = i;
    };
    std::for_each(node.reads.begin(), node.reads.end(), use);
    std::for_each(node.makes.begin(), node.makes.end(), use);
    for (const ValueId value : overwritten(node, *find_operator(node.kind))) {
      Uses& memory = uses[memories.of(value)];
      memory.written = true;
      memory.last_write = i;
    }
  }
  check_overwritten(graph, memories, uses);
  Intervals forbidden(graph.nodes.size());
  for (const Uses& memory : uses)
    if (memory.written) forbidden.add(memory.first + 1, memory.everywhere ? memory.last : memory.last_write);
  return forbidden;
}

}  // namespace

void find_cuts(Graph& graph, const Values& values) {
  const std::size_t count = graph.nodes.size();
  std::vector<std::size_t> last_read(graph.values, 0);
  for (std::size_t i = 0; i < count; ++i)
    for (const ValueId value : graph.nodes[i].reads) last_read[value] = i;
  for (const ValueId value : graph.outputs) last_read[value] = count;
  Intervals floats(count);
  Intervals others(count);  // cannot be sent
  for (std::size_t i = 0; i < count; ++i) {
    for (const ValueId value : graph.nodes[i].makes) {
      if (!values[value].tensor) continue;
      const auto dtype = values[value].description.dtype;
      if (!dtype) others.add(i + 1, last_read[value]);
      if (dtype && is_floating(*dtype)) floats.add(i + 1, last_read[value]);
    }
  }
  const auto overwritten_at = overwriting(graph).counts();
  const auto floats_at = floats.counts();
  const auto others_at = others.counts();
  for (std::size_t i = 0; i < count; ++i) {
    Node& node = graph.nodes[i];
    node.may_begin_stage = i == 0 || (overwritten_at[i] == 0 && others_at[i] == 0);
    node.begins_block = i == 0 || (node.may_begin_stage && floats_at[i] == 1);
  }
}

}  // namespace trainyard::models::pt2
