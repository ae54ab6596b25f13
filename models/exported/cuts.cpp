#include "models/exported/cuts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

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
// Sets `changes`.
void check_overwritten(Graph& graph, Memories& memories, const std::vector<Uses>& uses) {
  std::vector<const StoredTensor*> changed;
  for (StoredTensor& tensor : graph.tensors) {
    const bool written = uses[memories.of(tensor.value)].written;
    if (written && tensor.role == StoredTensor::Role::parameter)
      throw Fault("the parameter " + in_quotes(tensor.name) + " is overwritten in the forward pass",
                  "clone it before an operation in place, or make it a buffer");
    tensor.changes = written || tensor.requires_grad;
    if (tensor.changes) changed.push_back(&tensor);
  }
  check_own_memory(graph.tensors, changed);
}

// Nodes at which no stage may begin, because memory would be overwritten.
Intervals overwriting(Graph& graph) {
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
    std::ranges::for_each(node.reads, use);
    std::ranges::for_each(node.makes, use);
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

// The first and the last node that read a value.
struct Readers {
  std::size_t first = 0;
  std::size_t last = 0;
};

// By value. Without a reader both are behind the graph.
std::vector<Readers> readers_of(const Graph& graph) {
  const std::size_t count = graph.nodes.size();
  std::vector<Readers> all(graph.values, Readers{count, count});
  for (std::size_t i = 0; i < count; ++i)
    for (const ValueId value : graph.nodes[i].reads)
      all[value] = {.first = std::min(all[value].first, i), .last = i};
  return all;
}

// The last node up to each node, and up to the end, at which a stage may begin.
std::vector<std::size_t> last_cuts(const Graph& graph) {
  const std::size_t count = graph.nodes.size();
  std::vector<std::size_t> cuts(count + 1, count);
  for (std::size_t i = 0; i < count; ++i)
    cuts[i] = i == 0 || graph.nodes[i].may_begin_stage ? i : cuts[i - 1];
  return cuts;
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

void match_cuts(Graph& training, const Graph& evaluation) {
  const std::size_t count = training.nodes.size();
  const std::vector<Readers> in_training = readers_of(training), in_evaluation = readers_of(evaluation);
  std::map<std::string_view, ValueId> evaluated;
  for (const StoredTensor& tensor : evaluation.tensors) evaluated[tensor.name] = tensor.value;
  // Nodes of `evaluation` at which a stage can begin, for each node at which it begins in training.
  std::vector<std::size_t> earliest(count + 1, 1), latest(count + 1, evaluation.nodes.size());
  for (const StoredTensor& tensor : training.tensors) {
    const auto found = evaluated.find(tensor.name);
    if (!tensor.changes || found == evaluated.end()) continue;
    const std::size_t first = in_training[tensor.value].first;
    const Readers& readers = in_evaluation[found->second];
    latest[first] = std::min(latest[first], readers.first);
    if (first == count) continue;
    const std::size_t last = tensor.requires_grad ? readers.first : readers.last;
    earliest[first + 1] = std::max(earliest[first + 1], last + 1);
  }
  for (std::size_t i = count; i-- > 0;) latest[i] = std::min(latest[i], latest[i + 1]);
  const std::vector<std::size_t> cuts = last_cuts(evaluation);
  for (std::size_t i = 1; i < count; ++i) {
    earliest[i] = std::max(earliest[i], earliest[i - 1]);
    Node& node = training.nodes[i];
    node.in_evaluation = cuts[latest[i]];
    if (node.in_evaluation < earliest[i]) node.may_begin_stage = node.begins_block = false;
  }
}

}  // namespace trainyard::models::pt2
