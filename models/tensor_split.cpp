#include "models/tensor_split.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::models {

namespace {

using Kind = NodePart::Kind;

bool is_depthwise(const Node& node) {
  return node.kind == "conv2d" && node.sizes.at("groups") > 1;
}

bool is_embedding(const Node& node) {
  return node.kind.ends_with("_embedding");
}

bool adds_up_rows(const Node& node) {
  return is_embedding(node) && node.kind != "mean_embedding";
}

bool is_tied(const Node& node) {
  return node.kind == "tied_linear" || (node.kind == "token_embedding" && node.makes.size() > 1);
}

// Whether the layer is split if it is named, and otherwise not.
bool is_choice(const Node& node) {
  constexpr std::array kinds{"linear", "conv2d", "conv_transpose2d", "tied_linear"};
  return (std::ranges::find(kinds, node.kind) != kinds.end() || is_embedding(node)) && !is_depthwise(node);
}

bool is_attention(const Node& node) {
  return node.kind == "causal_attention";
}

// Whether each unit of the output depends on the same unit of the input only.
bool passes_parts(const Node& node) {
  constexpr std::array kinds{"relu",    "relu6",      "gelu",       "sigmoid",      "dropout",
                             "flatten", "max_pool2d", "image_mean", "batch_norm2d", "causal_attention"};
  return std::ranges::find(kinds, node.kind) != kinds.end() || is_depthwise(node);
}

struct Units {
  std::int64_t count = 0;
  const char* name = "";
};

// What is divided among the parts if the layer is split.
Units units_of(const Node& node) {
  if (is_attention(node)) return {node.sizes.at("heads"), "heads"};
  if (adds_up_rows(node)) return {node.sizes.at("vocabulary"), "tokens"};
  return {node.sizes.at("outputs"), "outputs"};
}

// Names of `split_dimensions`.
std::vector<std::string> dimensions_of(const Graph& graph, std::size_t i) {
  const Node& node = graph.nodes[i];
  if (is_attention(node)) return {"heads"};
  if (adds_up_rows(node) || is_tied(node)) return {"vocabulary"};
  if (node.kind.starts_with("conv")) return {"channels"};
  const bool beside_attention = (i > 0 && is_attention(graph.nodes[i - 1])) ||
                                (i + 1 < graph.nodes.size() && is_attention(graph.nodes[i + 1]));
  return beside_attention && node.kind == "linear" ? std::vector<std::string>{"width", "heads"}
                                                   : std::vector<std::string>{"width"};
}

// The least cost up to a node, and the choice that leads to it.
struct Best {
  double cost = std::numeric_limits<double>::infinity();
  std::size_t from = 0;           // state before the node
  std::optional<Kind> kind = {};  // empty: whole
  std::optional<Cut> value = {};  // of the value after the node, if it is split
  bool reached() const { return cost < std::numeric_limits<double>::infinity(); }
};

using NodeParts = std::vector<std::optional<NodePart>>;  // by node

// States of the value between two nodes. The first: no layer was split so far.
constexpr std::size_t untouched = 0, whole = 1, divided = 2, states = 3;

// An exchange costs as much as this many operations of a core: 10 µs, and 5 GB a second, at 40 · 10⁹ operations a second.
// These are rounded guesses for ranks on one host, so that the same file has the same split on every machine.
constexpr double operations_of_exchange = 400'000, operations_of_byte = 8;

class Planner {
 public:
  // `layers`: those to split; null: any. `tied`: whether the layers with a tied weight are split.
  Planner(const Graph& graph, std::int64_t parts, std::int64_t batch, const std::vector<std::int64_t>* layers,
          bool tied)
      : graph_(graph), parts_(parts), batch_(static_cast<double>(batch)), layers_(layers), tied_(tied) {
    std::vector<std::size_t> readers(graph.values, 0);
    numbers_.resize(graph.values, 0);
    learned_.resize(graph.values, false);
    for (const Node& node : graph.nodes) {
      for (const ValueId value : node.reads) ++readers[value];
      numbers_[node.makes.front()] = static_cast<double>(node.numbers);
      const bool learned = node.parameters > 0 || learned_[node.reads.front()];
      for (const ValueId value : node.makes) learned_[value] = learned;
    }
    for (const ValueId value : graph.outputs) ++readers[value];
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const ValueId made = graph.nodes[i].makes.front();
      const bool next_reads = i + 1 < graph.nodes.size() && graph.nodes[i + 1].reads.front() == made;
      may_split_after_.push_back(next_reads && readers[made] == 1);
    }
    plan();
  }

  double cost() const { return best_.back()[whole].cost; }  // infinite if there is no such plan
  bool possible() const { return best_.back()[whole].reached(); }

  NodeParts parts() const {
    NodeParts found(graph_.nodes.size());
    std::size_t state = whole;
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const Best& best = best_[i + 1][state];
      if (best.kind) found[i] = NodePart{*best.kind, cut_of(i, *best.kind, best.from)};
      state = best.from;
    }
    return found;
  }

 private:
  bool is_named(std::size_t node) const {
    return std::ranges::find(*layers_, static_cast<std::int64_t>(node)) != layers_->end();
  }

  void plan() {
    best_.resize(graph_.nodes.size() + 1);
    best_[0][untouched].cost = 0;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const bool chosen = layers_ != nullptr && is_named(i);
      const bool may_be_whole = !chosen && !(is_tied(node) && tied_);
      const bool may_be_split =
          is_choice(node) && (layers_ == nullptr || chosen) && (!is_tied(node) || tied_);
      for (const std::size_t from : {untouched, whole})
        if (may_be_whole) step(i, from, std::nullopt, from);
      for (const std::size_t from : {untouched, whole})
        if (may_be_split && units_of(node).count >= parts_) {
          if (adds_up_rows(node)) {
            step(i, from, Kind::rows, whole);
          } else {
            if (node.kind != "tied_linear") step(i, from, Kind::columns, divided);
            step(i, from, Kind::gathered, whole);
          }
        }
      if (may_be_split && !is_embedding(node) && node.kind != "tied_linear")
        step(i, divided, Kind::rows, whole);
      if (passes_parts(node)) step(i, divided, Kind::passes, divided);
    }
  }

  void step(std::size_t node, std::size_t from, std::optional<Kind> kind, std::size_t to) {
    const Best& before = best_[node][from];
    if (!before.reached() || (to == divided && !may_split_after_[node])) return;
    std::optional<Cut> value;
    if (to == divided) {
      value = cut_of(node, *kind, from);
      if (value->units < parts_ || (value->outer > 1 && graph_.nodes[node].kind != "linear")) return;
    }
    const double cost = before.cost + cost_of(node, kind, from);
    if (cost < best_[node + 1][to].cost) best_[node + 1][to] = {cost, from, kind, value};
  }

  // See NodePart::cut.
  Cut cut_of(std::size_t i, Kind kind, std::size_t from) const {
    const Node& node = graph_.nodes[i];
    if (kind == Kind::columns && i + 1 < graph_.nodes.size() && is_attention(graph_.nodes[i + 1])) {
      const std::int64_t heads = units_of(graph_.nodes[i + 1]).count;
      return {.outer = 3, .units = heads, .inner = units_of(node).count / (3 * heads)};
    }
    if (from != divided) return {.units = units_of(node).count};
    Cut cut = *best_[i][divided].value;
    if (kind == Kind::rows) return cut;
    if (is_attention(node)) cut.outer = 1;
    if (node.kind == "flatten") cut.inner = node.numbers / cut.units;
    return cut;
  }

  double exchange(double numbers) const {
    const double times = 2 * static_cast<double>(parts_ - 1) / static_cast<double>(parts_);
    return operations_of_exchange + operations_of_byte * times * sizeof(float) * numbers * batch_;
  }

  double cost_of(std::size_t i, std::optional<Kind> kind, std::size_t from) const {
    const Node& node = graph_.nodes[i];
    const double work = 3 * counted_cost(node) * batch_;  // backward has two products for each one of forward
    if (!kind) return work;
    const std::int64_t units = cut_of(i, *kind, from).units;
    const std::int64_t largest = (units + parts_ - 1) / parts_;
    double cost =
        adds_up_rows(node) ? work : work * static_cast<double>(largest) / static_cast<double>(units);
    if (from != divided && learned_[node.reads.front()]) cost += exchange(numbers_[node.reads.front()]);
    if (*kind == Kind::gathered || *kind == Kind::rows) cost += exchange(static_cast<double>(node.numbers));
    return cost;
  }

  const Graph& graph_;
  std::int64_t parts_;
  double batch_;
  const std::vector<std::int64_t>* layers_;
  bool tied_;
  std::vector<double> numbers_;        // by value, for one sample
  std::vector<bool> learned_;          // by value: it has a gradient
  std::vector<bool> may_split_after_;  // by node: only the next node reads its value
  std::vector<std::array<Best, states>> best_;
};

// Says why there is no plan.
[[noreturn]] void refuse(const Graph& graph, std::int64_t parts, const std::vector<std::int64_t>& layers) {
  const std::vector<std::int64_t> possible = splittable_layers(graph);
  bool tied = false, untied = false;
  for (const std::int64_t layer : layers) {
    const auto i = static_cast<std::size_t>(layer);
    if (std::ranges::find(possible, layer) == possible.end()) {
      throw UserError(fmt::format("layer {} {}; tensor_split may name {}", layer,
                                  i < graph.nodes.size() ? "(" + graph.nodes[i].kind + ") cannot be split"
                                                         : "is not one of the model's " +
                                                               std::to_string(graph.nodes.size()) + " layers",
                                  joined(possible, [](std::int64_t each) { return std::to_string(each); })));
    }
  }
  for (const std::int64_t layer : possible)
    if (is_tied(graph.nodes[static_cast<std::size_t>(layer)]))
      (std::ranges::find(layers, layer) != layers.end() ? tied : untied) = true;
  if (tied && untied)
    throw UserError(
        "the first and the last layer have the same weight, so tensor_split must name both or none");
  for (const std::int64_t layer : layers)
    if (const Units units = units_of(graph.nodes[static_cast<std::size_t>(layer)]); units.count < parts)
      throw UserError(
          fmt::format("tensor = {} is more than the {} {} of layer {}; use fewer parts, or list other "
                      "layers in tensor_split",
                      parts, units.count, units.name, layer));
  throw UserError("attention can only be split together with the layer before it; name both in tensor_split");
}

bool names_tied(const Graph& graph, const std::vector<std::int64_t>& layers) {
  return std::ranges::any_of(layers, [&](std::int64_t layer) {
    return layer >= 0 && static_cast<std::size_t>(layer) < graph.nodes.size() &&
           is_tied(graph.nodes[static_cast<std::size_t>(layer)]);
  });
}

NodeParts planned(const Graph& graph, const TensorSplit& split) {
  const Planner planner(graph, split.parts, split.batch, &split.layers, names_tied(graph, split.layers));
  if (!planner.possible() || !std::ranges::includes(splittable_layers(graph), split.layers))
    refuse(graph, split.parts, split.layers);
  return planner.parts();
}

}  // namespace

std::vector<std::int64_t> splittable_layers(const Graph& graph) {
  if (graph.exported())
    throw UserError("an exported network cannot be split into tensor parts", "use ddp, mp or pipeline");
  std::vector<std::int64_t> layers;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (is_choice(graph.nodes[i]) || is_attention(graph.nodes[i]))
      layers.push_back(static_cast<std::int64_t>(i));
  return layers;
}

std::span<const char* const> split_dimensions() {
  static constexpr std::array dimensions{"width", "channels", "heads", "vocabulary"};
  return dimensions;
}

std::vector<std::int64_t> layers_with(const Graph& graph, const std::vector<std::string>& dimensions) {
  std::set<std::string> possible;
  std::vector<std::int64_t> layers;
  for (const std::int64_t layer : splittable_layers(graph)) {
    bool chosen = false;
    for (const std::string& dimension : dimensions_of(graph, static_cast<std::size_t>(layer))) {
      possible.insert(dimension);
      chosen = chosen || std::ranges::find(dimensions, dimension) != dimensions.end();
    }
    if (chosen) layers.push_back(layer);
  }
  for (const std::string& dimension : dimensions)
    if (!possible.contains(dimension))
      throw UserError(fmt::format("no layer of the model has a dimension {}; its dimensions are {}",
                                  dimension, joined(possible)));
  return layers;
}

std::vector<std::int64_t> cheapest_split(const Graph& graph, std::int64_t parts, std::int64_t batch) {
  const std::vector<std::int64_t> possible = splittable_layers(graph);
  const Planner untied(graph, parts, batch, nullptr, false), tied(graph, parts, batch, nullptr, true);
  const Planner& best = tied.cost() < untied.cost() ? tied : untied;
  if (!best.possible())
    throw UserError(fmt::format("no layer has outputs, heads or tokens for tensor = {}", parts),
                    "use fewer parts or a wider model");
  const NodeParts found = best.parts();
  std::vector<std::int64_t> layers = possible;
  std::erase_if(layers, [&](std::int64_t layer) { return !found[static_cast<std::size_t>(layer)]; });
  return layers;
}

Graph graph_of_part(const Graph& graph, const TensorSplit& split, std::int64_t part) {
  const NodeParts found = planned(graph, split);
  Graph own = graph;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    Cut& cut = own.nodes[i].part.emplace(*found[i]).cut;
    cut.begin = cut.units * part / split.parts;
    cut.end = cut.units * (part + 1) / split.parts;
  }
  return own;
}

std::string split_text(const Graph& graph, const TensorSplit& split) {
  constexpr std::array names{"columns", "columns, gathered", "rows", "heads"};
  const NodeParts found = planned(graph, split);
  std::string text;
  for (const std::int64_t layer : splittable_layers(graph))
    if (const auto& part = found[static_cast<std::size_t>(layer)])
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", layer,
                          names.at(static_cast<std::size_t>(part->kind)));
  return text;
}

}  // namespace trainyard::models
