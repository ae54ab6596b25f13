#include "models/exported/cost.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "models/exported/arguments.h"
#include "models/exported/operators.h"
#include "models/exported/tensors.h"

namespace trainyard::models::pt2 {

namespace {

// The arguments of a node with the sizes of their tensors.
class Sizes {
 public:
  Sizes(const Node& node, const Values& values) : node_(node), values_(values) {}

  // The tensor or tensors of an argument. Empty if it is left out or is not a tensor.
  std::vector<const Description*> all(std::string_view name) const {
    std::vector<const Description*> tensors;
    for (const ValueId value : reads_of(node_, find_argument(node_, name)))
      tensors.push_back(&values_[value].description);
    return tensors;
  }
  const Description& one(std::string_view name) const {
    static const Description none{};
    const auto tensors = all(name);
    return tensors.empty() ? none : *tensors.front();
  }
  double made() const { return node_.makes.empty() ? 0 : values_[node_.makes.front()].description.items(); }
  const Node& node() const { return node_; }

 private:
  const Node& node_;
  const Values& values_;
};

// The size of a dimension, from the end. 1 if the tensor has fewer dimensions.
double last_size(const Description& tensor, std::size_t from_end = 1) {
  return tensor.sizes.size() < from_end ? 1
                                        : static_cast<double>(tensor.sizes[tensor.sizes.size() - from_end]);
}

double ratio(double items, double part) {
  return part > 0 ? items / part : 0;
}

// A result has one sum per item, over the last dimension of `left`.
double product(const Sizes& sizes, std::string_view left) {
  return sizes.made() * last_size(sizes.one(left));
}

double convolution(const Sizes& sizes) {
  const Description& weight = sizes.one("weight");
  return sizes.made() * ratio(weight.items(), last_size(weight, weight.sizes.size()));
}

double transposed_convolution(const Sizes& sizes) {
  const Description& weight = sizes.one("weight");
  return sizes.one("input").items() * ratio(weight.items(), last_size(weight, weight.sizes.size()));
}

double attention(const Sizes& sizes) {
  const Description& query = sizes.one("query");
  const double keys = last_size(sizes.one("key"), 2);
  const double pairs = ratio(query.items(), last_size(query)) * keys;
  return pairs * (last_size(query) + last_size(sizes.one("value")));
}

// Each matrix of weights is used once per token.
double recurrent(const Sizes& sizes) {
  const Description& input = sizes.one("input");
  double weights = 0;
  for (const Description* weight : sizes.all("params"))
    if (weight->sizes.size() == 2) weights += weight->items();
  return weights * ratio(input.items(), last_size(input));
}

double recurrent_cell(const Sizes& sizes) {
  const Description& input = sizes.one("input");
  return (sizes.one("w_ih").items() + sizes.one("w_hh").items()) * ratio(input.items(), last_size(input));
}

// The product of the sizes of all letters. With an ellipsis, an estimate: one sum per item of the result.
double einsum(const Sizes& sizes) {
  const Argument* argument = find_argument(sizes.node(), "equation");
  const auto* equation = argument == nullptr ? nullptr : std::get_if<std::string>(&argument->value);
  const auto tensors = sizes.all("tensors");
  if (equation == nullptr || equation->find('.') != std::string::npos) return sizes.made();
  std::map<char, double> letters;
  std::size_t tensor = 0;
  std::size_t dimension = 0;
  for (const char letter : equation->substr(0, equation->find("->"))) {
    if (letter == ',') {
      ++tensor;
      dimension = 0;
    } else if (letter != ' ') {
      if (tensor >= tensors.size() || dimension >= tensors[tensor]->sizes.size()) return sizes.made();
      letters[letter] = static_cast<double>(tensors[tensor]->sizes[dimension++]);
    }
  }
  double all = 1;
  for (const auto& [letter, size] : letters) all *= size;
  return all;
}

// The part of the operator's name between the dots: "linear" of "aten.linear.default".
std::string short_name(const std::string& kind) {
  const std::size_t first = kind.find('.') + 1;
  return kind.substr(first, kind.find('.', first) - first);
}

double multiply_adds(const Sizes& sizes) {
  static const std::map<std::string, std::function<double(const Sizes&)>> rules{
      {"linear", [](const Sizes& s) { return product(s, "input"); }},
      {"matmul", [](const Sizes& s) { return product(s, "self"); }},
      {"linalg_matmul", [](const Sizes& s) { return product(s, "self"); }},
      {"mm", [](const Sizes& s) { return product(s, "self"); }},
      {"bmm", [](const Sizes& s) { return product(s, "self"); }},
      {"mv", [](const Sizes& s) { return product(s, "self"); }},
      {"dot", [](const Sizes& s) { return product(s, "self"); }},
      {"addmm", [](const Sizes& s) { return product(s, "mat1"); }},
      {"addmv", [](const Sizes& s) { return product(s, "mat"); }},
      {"baddbmm", [](const Sizes& s) { return product(s, "batch1"); }},
      {"conv1d", convolution},
      {"conv2d", convolution},
      {"conv3d", convolution},
      {"conv_transpose1d", transposed_convolution},
      {"conv_transpose2d", transposed_convolution},
      {"conv_transpose3d", transposed_convolution},
      {"scaled_dot_product_attention", attention},
      {"lstm", recurrent},
      {"gru", recurrent},
      {"rnn_tanh", recurrent},
      {"rnn_relu", recurrent},
      {"lstm_cell", recurrent_cell},
      {"gru_cell", recurrent_cell},
      {"rnn_tanh_cell", recurrent_cell},
      {"rnn_relu_cell", recurrent_cell},
      {"einsum", einsum},
  };
  const auto rule = rules.find(short_name(sizes.node().kind));
  return rule == rules.end() ? 0 : rule->second(sizes);
}

// One row is read and one is written for each index. A bag writes one row for all of its indices.
double moved_bytes(const Sizes& sizes) {
  const std::string kind = short_name(sizes.node().kind);
  if (kind != "embedding" && kind != "embedding_bag") return 0;
  const Description& weight = sizes.one("weight");
  const double row =
      last_size(weight) * static_cast<double>(item_bytes(weight.dtype.value_or(Dtype::float64)));
  return sizes.one("indices").items() * row + sizes.made() / std::max(1.0, last_size(weight)) * row;
}

[[noreturn]] void refuse_weights(const std::string& what) {
  throw Fault("the sizes of this recurrent layer do not fit: " + what);
}

template <class Type>
Type constant(const Node& node, std::string_view name) {
  const Argument* argument = find_argument(node, name);
  const auto* value = argument == nullptr ? nullptr : std::get_if<Type>(&argument->value);
  if (value == nullptr) refuse_weights("the argument " + in_quotes(name) + " is not a constant");
  return *value;
}

}  // namespace

void count_cost(Node& node, const Values& values, double batch) {
  const Sizes sizes(node, values);
  node.forward_flops = 2 * multiply_adds(sizes) / batch;
  node.forward_bytes = moved_bytes(sizes) / batch;
}

void check_recurrent(const Node& node, const Values& values) {
  static const std::map<std::string, std::int64_t> gates{
      {"aten.lstm.input", 4}, {"aten.gru.input", 3}, {"aten.rnn_tanh.input", 1}, {"aten.rnn_relu.input", 1}};
  const auto kind = gates.find(node.kind);
  if (kind == gates.end()) return;
  const Sizes sizes(node, values);
  const auto weights = sizes.all("params");
  const bool biases = constant<bool>(node, "has_biases");
  const std::int64_t directions = constant<bool>(node, "bidirectional") ? 2 : 1;
  const auto layers = constant<std::int64_t>(node, "num_layers");
  if (layers < 1 || layers > static_cast<std::int64_t>(most_list_items))
    refuse_weights("the number of its layers");
  const Description& input = sizes.one("input");
  const auto states = sizes.all("hx");
  if (states.size() != (kind->second == 4 ? 2U : 1U)) refuse_weights("the number of its states");
  if (input.sizes.empty()) refuse_weights("its input has no dimensions");
  for (const Description* state : states)
    if (state->sizes.size() != input.sizes.size() || state->sizes.front() != layers * directions)
      refuse_weights("its states");
  const std::int64_t outputs = states.front()->sizes.back(), hidden = states.back()->sizes.back();
  const std::int64_t rows = kind->second * hidden;
  const std::size_t each =
      2U + (biases ? 2U : 0U) + (outputs == hidden ? 0U : 1U);  // a projection is the last
  if (weights.size() != static_cast<std::size_t>(layers * directions) * each)
    refuse_weights(fmt::format("{} tensors of weights", weights.size()));
  for (std::size_t i = 0; i < weights.size(); i += each) {
    const bool first = i / each < static_cast<std::size_t>(directions);
    const std::int64_t inputs = first ? input.sizes.back() : outputs * directions;
    std::vector<std::vector<std::int64_t>> right{{rows, inputs}, {rows, outputs}};
    if (biases) right.insert(right.end(), 2, {rows});
    if (outputs != hidden) right.push_back({outputs, hidden});
    for (std::size_t k = 0; k < each; ++k)
      if (weights[i + k]->sizes != right[k])
        refuse_weights(fmt::format("weights of layer {}", i / each / static_cast<std::size_t>(directions)));
  }
}

}  // namespace trainyard::models::pt2
