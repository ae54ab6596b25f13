// The memory order of images and of the weights of their convolutions.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/networks/network.h"
#include "tests/models/networks/operator_nodes.h"

namespace trainyard::operator_nodes {

namespace {

using Sizes = std::vector<std::int64_t>;

Node convolution(std::int64_t stride = 1, std::int64_t padding = 0, std::int64_t groups = 1) {
  return operator_of("aten.conv2d.default", 3,
                     {read("input", 0), read("weight", 1), read("bias", 2), whole("stride", stride),
                      whole("padding", padding), whole("dilation", 1), whole("groups", groups)});
}

at::Tensor leaf(at::IntArrayRef sizes, at::MemoryFormat order) {
  return at::randn(sizes, at::kDouble).contiguous(order).requires_grad_();
}

// How the last result was made: "PermuteBackward0" after a product of matrices.
std::string maker(const at::Tensor& result) {
  return result.grad_fn()->name();
}

constexpr const char* as_product = "PermuteBackward0";
constexpr const char* as_convolution = "ConvolutionBackward0";

// An image network whose only convolution takes `flops` operations. Value 1 is the weight.
models::Graph one_convolution(const Sizes& weight, double flops) {
  Node node = operator_of("aten.conv2d.default", 2, {read("input", 0), read("weight", 1)});
  node.forward_flops = flops;
  models::StoredTensor stored{
      .name = "conv.weight", .value = 1, .sizes = weight, .strides = {}, .storage = {}};
  std::int64_t items = 1;
  for (auto size = weight.rbegin(); size != weight.rend(); ++size) {
    stored.strides.insert(stored.strides.begin(), items);
    items *= *size;
  }
  stored.storage = std::make_shared<const std::string>(static_cast<std::size_t>(items) * sizeof(float), '\0');
  return {.values = 3, .nodes = {node}, .outputs = {2}, .tensors = {stored}};
}

Node after(Node node) {  // reads the result of the convolution, and makes value 3
  node.path = "after";
  node.makes = {3};
  return node;
}

bool is_channels_last(const at::Tensor& tensor) {
  return tensor.is_contiguous(at::MemoryFormat::ChannelsLast) && !tensor.is_contiguous();
}

}  // namespace

TEST_CASE("a convolution by pixel is a product of matrices, with the same results and gradients") {
  const at::Tensor weight = leaf({6, 3, 1, 1}, at::MemoryFormat::ChannelsLast),
                   bias = random_leaf({6}, at::kDouble);
  const at::Tensor x = leaf({2, 3, 4, 5}, at::MemoryFormat::ChannelsLast);
  const at::Tensor own = run(convolution(), {x, weight, bias}).at(0);
  const at::Tensor direct = at::conv2d(x, weight, bias);
  CHECK(maker(own) == as_product);
  CHECK(own.strides() == direct.strides());
  CHECK(at::allclose(own, direct, 1e-12, 1e-12));
  const at::Tensor seed = at::randn_like(direct);
  const auto gradients = [&](const at::Tensor& result) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& one : {x, weight, bias}) one.mutable_grad().reset();
    result.backward(seed);
    for (const at::Tensor& one : {x, weight, bias}) all.push_back(one.grad().clone());
    return all;
  };
  const auto own_gradients = gradients(own), direct_gradients = gradients(direct);
  for (std::size_t i = 0; i < direct_gradients.size(); ++i)
    CHECK(at::allclose(own_gradients[i], direct_gradients[i], 1e-12, 1e-12));
}

TEST_CASE("other convolutions are those of LibTorch") {
  const at::Tensor x = leaf({2, 4, 5, 5}, at::MemoryFormat::ChannelsLast),
                   bias = random_leaf({6}, at::kDouble);
  const at::Tensor pixel = leaf({6, 4, 1, 1}, at::MemoryFormat::ChannelsLast);
  CHECK(maker(run(convolution(), {x, pixel, bias}).at(0)) == as_product);
  CHECK(maker(run(convolution(2), {x, pixel, bias}).at(0)) == as_convolution);
  CHECK(maker(run(convolution(1, 1), {x, pixel, bias}).at(0)) == as_convolution);
  const at::Tensor in_rows = leaf({2, 4, 5, 5}, at::MemoryFormat::Contiguous);
  CHECK(maker(run(convolution(), {in_rows, pixel, bias}).at(0)) == as_convolution);
  const at::Tensor grouped = leaf({6, 2, 1, 1}, at::MemoryFormat::ChannelsLast);
  CHECK(maker(run(convolution(1, 0, 2), {x, grouped, bias}).at(0)) == as_convolution);
  const at::Tensor wide = leaf({6, 4, 3, 3}, at::MemoryFormat::ChannelsLast);
  CHECK(maker(run(convolution(), {x, wide, bias}).at(0)) == as_convolution);
}

TEST_CASE("images have channels last if the weights are used often enough") {
  const Sizes weight{8, 3, 3, 3};  // 216 numbers, so 7,560 multiply-adds per sample
  const Network often = build_network(one_convolution(weight, 15120), {});
  const Network seldom = build_network(one_convolution(weight, 15119), {});
  CHECK(often.channels_last);
  CHECK(is_channels_last(often.parameter_values().at(0)));
  CHECK_FALSE(seldom.channels_last);
  CHECK(seldom.parameter_values().at(0).is_contiguous());
  CHECK(build_network(one_convolution({8, 3, 1, 1}, 1), {}).channels_last);  // nothing is copied
}

TEST_CASE("images keep the order of the export if an operator depends on it") {
  models::Graph graph = one_convolution({8, 3, 3, 3}, 1e6);
  graph.values = 4;
  graph.outputs = {3};
  graph.nodes.push_back(
      after(operator_of("aten.view.default", 1, {read("self", 0), list_of_ints("size", {-1})})));
  graph.nodes.back().reads = {2};
  CHECK_FALSE(build_network(graph, {}).channels_last);
  models::Graph only_in_evaluation = one_convolution({8, 3, 3, 3}, 1e6);
  only_in_evaluation.evaluation = std::make_shared<const models::Graph>(graph);
  CHECK_FALSE(build_network(only_in_evaluation, {}).channels_last);
}

TEST_CASE("a weight that another operator reads keeps its order") {
  models::Graph graph = one_convolution({8, 3, 3, 3}, 1e6);
  graph.values = 4;
  graph.outputs = {2, 3};
  graph.nodes.push_back(after(operator_of("aten.neg.default", 1, {read("self", 0)})));
  graph.nodes.back().reads = {1};
  const Network network = build_network(graph, {});
  CHECK(network.channels_last);
  CHECK(network.parameter_values().at(0).is_contiguous());
}

}  // namespace trainyard::operator_nodes
