#include "models/exported/cost.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

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

}  // namespace

void count_cost(Node& node, const Values& values, double batch) {
  const Sizes sizes(node, values);
  node.forward_flops = 2 * multiply_adds(sizes) / batch;
  node.forward_bytes = moved_bytes(sizes) / batch;
}

}  // namespace trainyard::models::pt2
