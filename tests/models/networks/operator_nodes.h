// Nodes of a graph that are operators of PyTorch, written by hand, and their comparison with direct calls.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/variable.h>

#include "models/networks/operator_node.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/support/contains.h"
#include "tests/support/user_error.h"

namespace trainyard::operator_nodes {

using namespace networks;
using models::Argument;
using models::Node;
using models::Returned;
using List = Argument::List;

inline Argument read(std::string name, std::size_t index) {
  return {std::move(name), Argument::Read{index}};
}

template <class Value>
inline Argument given(std::string name, Value value) {
  return {std::move(name), std::move(value)};
}

inline Argument text(std::string name, std::string value) {
  return {std::move(name), std::move(value)};
}

inline Argument whole(std::string name, std::int64_t value) {
  return {std::move(name), value};
}

inline Argument list_of_ints(std::string name, std::initializer_list<std::int64_t> values) {
  List items;
  for (const std::int64_t value : values) items.push_back(whole("", value));
  return {std::move(name), items};
}

inline Argument reads(std::string name, std::size_t first, std::size_t last) {
  List items;
  for (std::size_t i = first; i < last; ++i) items.push_back(read("", i));
  return {std::move(name), items};
}

inline Node operator_of(const std::string& kind, std::size_t inputs, std::vector<Argument> arguments,
                        std::vector<Returned> returned = {{}}) {
  Node made{
      .path = "node_7", .kind = kind, .arguments = std::move(arguments), .returned = std::move(returned)};
  std::size_t results = 0;
  for (const Returned& one : made.returned) results += one.values;
  for (std::size_t i = 0; i < inputs + results; ++i) (i < inputs ? made.reads : made.makes).push_back(i);
  made.module = "layer1.0";
  return made;
}

inline ForwardContext in_training(std::int64_t step = 2, const at::Tensor& samples = {}) {
  ForwardContext context;
  context.seed = 7;
  context.step = step;
  context.samples = samples;
  return context;
}

inline ForwardContext in_evaluation() {
  ForwardContext context;
  context.training = false;
  return context;
}

inline Activations run(const Node& node, const Activations& inputs,
                       const ForwardContext& context = in_training()) {
  return operator_forward(node, at::kCPU)(inputs, context);
}

inline at::Tensor random_leaf(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return at::randn(sizes, type).requires_grad_();
}

// The same bits, type, sizes and strides.
inline void check_same(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  CHECK((a.scalar_type() == b.scalar_type()));
  CHECK(a.strides() == b.strides());
  CHECK(at::equal(a, b));
}

// The same results and the same gradients of all inputs that require one.
inline void check_node(const Node& node, const Activations& inputs,
                       const std::function<at::Tensor(const Activations&)>& expected) {
  CAPTURE(node.kind);
  const auto gradients_of = [&](const at::Tensor& result) {
    Activations leaves;
    for (const at::Tensor& input : inputs)
      if (input.requires_grad()) leaves.push_back(input);
    for (at::Tensor& one : leaves) one.mutable_grad().reset();
    result.backward(at::linspace(-1, 1, result.numel(), result.options()).view(result.sizes()));
    for (at::Tensor& one : leaves) one = one.grad().clone();
    return leaves;
  };
  const at::Tensor own = run(node, inputs).at(0), direct = expected(inputs);
  check_same(own, direct);
  if (!direct.requires_grad()) return;
  const Activations own_gradients = gradients_of(own), gradients = gradients_of(direct);
  for (std::size_t i = 0; i < gradients.size(); ++i) check_same(own_gradients[i], gradients[i]);
}

inline std::string refusal(const Node& node) {
  return tests::user_error_of([&] { operator_forward(node, at::kCPU); });
}

}  // namespace trainyard::operator_nodes
