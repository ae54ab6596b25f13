// Operators of PyTorch as nodes of a graph, against direct calls of LibTorch.
#include "models/networks/operator_node.h"

#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/variable.h>

#include "base/error.h"
#include "models/chain.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace {

using namespace trainyard;
using namespace trainyard::networks;
using models::Argument;
using models::Node;
using models::Returned;
using List = Argument::List;

Argument read(std::string name, std::size_t index) {
  return {std::move(name), Argument::Read{index}};
}

template <class Value>
Argument given(std::string name, Value value) {
  return {std::move(name), std::move(value)};
}

Argument text(std::string name, std::string value) {
  return {std::move(name), std::move(value)};
}

Argument whole(std::string name, std::int64_t value) {
  return {std::move(name), value};
}

Argument list_of_ints(std::string name, std::initializer_list<std::int64_t> values) {
  List items;
  for (const std::int64_t value : values) items.push_back(whole("", value));
  return {std::move(name), items};
}

Argument reads(std::string name, std::size_t first, std::size_t last) {
  List items;
  for (std::size_t i = first; i < last; ++i) items.push_back(read("", i));
  return {std::move(name), items};
}

Node operator_of(const std::string& kind, std::size_t inputs, std::vector<Argument> arguments,
                 std::vector<Returned> returned = {{}}) {
  Node made{
      .path = "node_7", .kind = kind, .arguments = std::move(arguments), .returned = std::move(returned)};
  std::size_t results = 0;
  for (const Returned& one : made.returned) results += one.values;
  for (std::size_t i = 0; i < inputs + results; ++i) (i < inputs ? made.reads : made.makes).push_back(i);
  made.module = "layer1.0";
  return made;
}

ForwardContext in_training(std::int64_t step = 2, const at::Tensor& samples = {}) {
  ForwardContext context;
  context.seed = 7;
  context.step = step;
  context.samples = samples;
  return context;
}

ForwardContext in_evaluation() {
  ForwardContext context;
  context.training = false;
  return context;
}

Activations run(const Node& node, const Activations& inputs, const ForwardContext& context = in_training()) {
  return operator_forward(node, at::kCPU)(inputs, context);
}

at::Tensor random_leaf(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return at::randn(sizes, type).requires_grad_();
}

// The same bits, type, sizes and strides.
void check_same(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  CHECK((a.scalar_type() == b.scalar_type()));
  CHECK(a.strides() == b.strides());
  CHECK(at::equal(a, b));
}

// The same results and the same gradients of all inputs that require one.
void check_node(const Node& node, const Activations& inputs,
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

// The message of the UserError that `call` throws. Empty if there is none.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const Node& node) {
  return refusal([&] { operator_forward(node, at::kCPU); });
}

bool contains(const std::string& whole_text, const std::string& part) {
  CAPTURE(whole_text);
  CAPTURE(part);
  return whole_text.find(part) != std::string::npos;
}

Node dropout_node(const std::string& kind, double p, bool train = true) {
  return operator_of("aten." + kind + ".default", 1,
                     {read(kind.ends_with('_') ? "self" : "input", 0), given("p", p), given("train", train)});
}

Node attention_node(std::size_t inputs, double p, std::vector<Argument> more = {}) {
  std::vector<Argument> arguments{read("query", 0), read("key", 1), read("value", 2), given("dropout_p", p)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return operator_of("aten.scaled_dot_product_attention.default", inputs, std::move(arguments));
}

Node recurrent_node(const std::string& kind, std::size_t states, std::size_t weights, bool bidirectional,
                    std::int64_t layers, double dropout = 0) {
  const Argument hx = states == 1 ? read("hx", 1) : reads("hx", 1, 1 + states);
  return operator_of(
      "aten." + kind + ".input", 1 + states + weights,
      {read("input", 0), hx, reads("params", 1 + states, 1 + states + weights), given("has_biases", true),
       whole("num_layers", layers), given("dropout", dropout), given("train", true),
       given("bidirectional", bidirectional), given("batch_first", true)},
      std::vector<Returned>(1 + states));
}

}  // namespace

TEST_CASE("a node computes what LibTorch computes, with the same gradients") {
  check_node(operator_of("aten.relu.default", 1, {read("self", 0)}), {random_leaf({3, 4})},
             [](const Activations& x) { return at::relu(x[0]); });
  check_node(operator_of("aten.linear.default", 3, {read("input", 0), read("weight", 1), read("bias", 2)}),
             {random_leaf({3, 4}), random_leaf({5, 4}), random_leaf({5})},
             [](const Activations& x) { return at::linear(x[0], x[1], x[2]); });
  check_node(operator_of("aten.conv2d.default", 2,
                         {read("input", 0), read("weight", 1), given("bias", std::monostate()),
                          list_of_ints("stride", {2, 1}), whole("padding", 1)}),  // 1 stands for {1, 1}
             {random_leaf({2, 3, 8, 8}), random_leaf({4, 3, 3, 3})}, [](const Activations& x) {
               return at::conv2d(x[0], x[1], {}, at::IntArrayRef{2, 1}, at::IntArrayRef{1, 1});
             });
  check_node(operator_of("aten.layer_norm.default", 3,
                         {read("input", 0), list_of_ints("normalized_shape", {6}), read("weight", 1),
                          read("bias", 2)}),
             {random_leaf({2, 5, 6}), random_leaf({6}), random_leaf({6})},
             [](const Activations& x) { return at::layer_norm(x[0], {6}, x[1], x[2]); });
  check_node(operator_of("aten.gelu.default", 1, {read("self", 0), text("approximate", "tanh")}),
             {random_leaf({9})}, [](const Activations& x) { return at::gelu(x[0], "tanh"); });
  check_node(operator_of("aten.cross_entropy_loss.default", 2, {read("self", 0), read("target", 1)}),
             {random_leaf({4, 3}), at::tensor({0, 2, 1, 2}, at::kLong)},
             [](const Activations& x) { return at::cross_entropy_loss(x[0], x[1]); });
  check_node(operator_of("aten.embedding.default", 2, {read("weight", 0), read("indices", 1)}),
             {random_leaf({10, 3}), at::tensor({4, 9, 4}, at::kLong)},
             [](const Activations& x) { return at::embedding(x[0], x[1]); });
  check_node(operator_of("aten.leaky_relu.default", 1, {read("self", 0), whole("negative_slope", 0)}),
             {random_leaf({9})}, [](const Activations& x) { return at::leaky_relu(x[0], 0); });
  check_node(operator_of("aten.matmul.default", 1, {read("self", 0), read("other", 0)}),
             {random_leaf({3, 3})}, [](const Activations& x) { return at::matmul(x[0], x[0]); });
}

TEST_CASE("a result may be one of several, a list, or read by nobody") {
  const at::Tensor x = at::randn({6, 4});
  const Activations parts =
      run(operator_of("aten.split.Tensor", 1, {read("self", 0), whole("split_size", 2), whole("dim", 0)},
                      {{.values = 3, .list = true}}),
          {x});
  REQUIRE(parts.size() == 3);
  check_same(parts[1], x.slice(0, 2, 4));
  const Activations top =
      run(operator_of("aten.topk.default", 1, {read("self", 0), whole("k", 2)}, {{0}, {1}}), {x});
  REQUIRE(top.size() == 1);
  check_same(top[0], std::get<1>(at::topk(x, 2)));

  const auto forward =
      operator_forward(operator_of("aten.split.Tensor", 1, {read("self", 0), whole("split_size", 3)},
                                   {{.values = 3, .list = true}}),
                       at::kCPU);
  CHECK(contains(refusal([&] { forward({x}, in_training()); }), "list of 2 tensors, but the graph has 3"));
  CHECK(contains(refusal(operator_of("aten.relu.default", 1, {read("self", 0)}, {{}, {}})), "other results"));
}

TEST_CASE("lists of tensors may have items that are None") {
  const at::Tensor x = at::randn({4, 5}), y = at::randn({2, 5});
  const at::Tensor index = at::tensor({3, 0}, at::kLong);
  check_same(run(operator_of("aten.cat.default", 2, {reads("tensors", 0, 2), whole("dim", 0)}), {x, y}).at(0),
             at::cat({x, y}));
  const Argument indices{"indices", List{given("", std::monostate()), read("", 1)}};
  check_same(run(operator_of("aten.index.Tensor", 2, {read("self", 0), indices}), {x, index}).at(0),
             x.index({at::indexing::Slice(), index}));
  CHECK(contains(refusal(operator_of("aten.cat.default", 1,
                                     {Argument{"tensors", List{read("", 0), given("", std::monostate())}}})),
                 "argument tensors"));
}

TEST_CASE("integers of the graph become sizes, numbers and tensors") {
  const at::Tensor x = at::randn({4, 6});
  const at::Tensor size =
      run(operator_of("aten.sym_size.int", 1, {read("self", 0), whole("dim", 1)}), {x}).at(0);
  CHECK(size.dim() == 0);
  CHECK((size.scalar_type() == at::kLong));
  CHECK(size.item<std::int64_t>() == 6);

  const Argument sizes{"size", List{whole("", 2), whole("", 2), read("", 1)}};
  check_same(run(operator_of("aten.view.default", 2, {read("self", 0), sizes}), {x, size}).at(0),
             x.view({2, 2, 6}));
  check_same(
      run(operator_of("aten.arange.default", 1, {read("end", 0), given("device", models::RunDevice())}),
          {at::scalar_tensor(6, at::kLong)})
          .at(0),
      at::arange(6));
  check_same(run(operator_of("aten.full.default", 1,
                             {list_of_ints("size", {2}), read("fill_value", 0),
                              given("dtype", models::Dtype::float64)}),
                 {number_tensor(2.5)})
                 .at(0),
             at::full({2}, 2.5, at::kDouble));
  CHECK(
      run(operator_of("aten.item.default", 1, {read("self", 0)}), {at::tensor({1.5})}).at(0).item<double>() ==
      1.5);
  CHECK(run(operator_of("aten.item.default", 1, {read("self", 0)}), {at::tensor({3}, at::kLong)})
            .at(0)
            .item<std::int64_t>() == 3);
  // as in Python, a number does not change the type of the tensor
  const at::Tensor narrow = x.to(at::kBFloat16), counts = at::arange(3, at::kInt);
  check_same(
      run(operator_of("aten.mul.Tensor", 2, {read("self", 0), read("other", 1)}), {narrow, size}).at(0),
      narrow * 6);
  check_same(run(operator_of("aten.mul.Tensor", 1, {read("self", 0), given("other", 2.5)}), {narrow}).at(0),
             narrow * 2.5);
  check_same(
      run(operator_of("aten.add_.Tensor", 1, {read("self", 0), whole("other", 1)}), {counts.clone()}).at(0),
      counts + 1);
}

TEST_CASE("operators of numbers compute as in Python") {
  const auto number = [](const std::string& kind, const at::Scalar& a, std::optional<std::int64_t> b) {
    std::vector<Argument> arguments{read("a", 0)};
    if (b) arguments.push_back(whole("b", *b));
    return run(operator_of(kind, 1, arguments), {number_tensor(a)}).at(0);
  };
  const auto integer = [&](const std::string& kind, std::int64_t a, std::optional<std::int64_t> b = {}) {
    const at::Tensor result = number(kind, a, b);
    CHECK(at::isIntegralType(result.scalar_type(), true));
    return result.item<std::int64_t>();
  };
  CHECK(integer("_operator.mul", 6, 7) == 42);
  CHECK(integer("_operator.sub", 6, 7) == -1);
  CHECK(integer("_operator.floordiv", -7, 2) == -4);
  CHECK(integer("_operator.floordiv", 7, 2) == 3);
  CHECK(integer("_operator.mod", -7, 3) == 2);
  CHECK(integer("_operator.mod", 7, -3) == -2);
  CHECK(integer("_operator.neg", 7) == -7);
  CHECK(integer("_operator.ge", 7, 7) == 1);
  CHECK(integer("_operator.lt", 7, 7) == 0);
  CHECK(integer("torch.sym_max", 3, 5) == 5);
  CHECK(integer("torch.sym_min", 3, 5) == 3);
  CHECK(number("_operator.truediv", 7, 2).item<double>() == 3.5);
  CHECK(number("_operator.mul", 1.5, 3).item<double>() == 4.5);
  CHECK((number("torch.sym_float", 3, {}).scalar_type() == at::kDouble));
  CHECK(number("torch.sym_int", -2.7, {}).item<std::int64_t>() == -2);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(contains(refusal([&] { integer("_operator.add", most, 1); }), "node node_7"));
  CHECK(contains(refusal([&] { integer("_operator.mul", most, 2); }), "64 bits"));
  CHECK(contains(refusal([&] { integer("_operator.floordiv", -most - 1, -1); }), "64 bits"));
  CHECK(contains(refusal([&] { integer("_operator.mod", 1, 0); }), "divides by 0"));
  CHECK(contains(refusal(operator_of("_operator.matmul", 1, {read("a", 0)})), "no such operator"));
}

TEST_CASE("memory orders, types, layouts and devices are those of LibTorch") {
  const at::Tensor x = at::randn({2, 3, 4, 5});
  const auto order = [&](models::MemoryOrder memory) {
    return run(operator_of("aten.clone.default", 1, {read("self", 0), given("memory_format", memory)}), {x})
        .at(0);
  };
  check_same(order(models::MemoryOrder::channels_last), x.clone(at::MemoryFormat::ChannelsLast));
  check_same(order(models::MemoryOrder::preserve), x.clone(at::MemoryFormat::Preserve));
  check_same(order(models::MemoryOrder::contiguous), x.clone(at::MemoryFormat::Contiguous));
  check_same(
      run(operator_of("aten.to.dtype", 1, {read("self", 0), given("dtype", models::Dtype::bfloat16)}), {x})
          .at(0),
      x.to(at::kBFloat16));
  const auto zeros = [](const std::vector<Argument>& more) {
    std::vector<Argument> arguments{list_of_ints("size", {2, 3}), given("pin_memory", false)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return operator_of("aten.zeros.default", 0, arguments);
  };
  check_same(run(zeros({text("layout", "strided"), given("dtype", models::Dtype::int32)}), {}).at(0),
             at::zeros({2, 3}, at::kInt));
  check_same(run(zeros({whole("layout", 0), given("device", models::RunDevice())}), {}).at(0),
             at::zeros({2, 3}));
  CHECK(operator_forward(zeros({}), at::kMeta)({}, in_training()).at(0).is_meta());
  CHECK(operator_forward(zeros({given("device", models::RunDevice())}), at::kMeta)({}, in_training())
            .at(0)
            .is_meta());
  CHECK(contains(refusal(zeros({whole("dtype", 6)})), "argument dtype has another type"));
  CHECK(contains(refusal(zeros({whole("layout", 1)})), "argument layout has another type"));
  CHECK(contains(refusal(zeros({text("device", "cpu")})), "argument device has another type"));
}

TEST_CASE("a node that does not fit this LibTorch is refused by its name") {
  const auto relu = [](std::vector<Argument> arguments) {
    return operator_of("aten.relu.default", 1, std::move(arguments));
  };
  const std::string unknown = refusal(operator_of("aten.relu.out_of_this_world", 1, {read("self", 0)}));
  CHECK(contains(unknown, "node node_7 of module layer1.0 (aten.relu.out_of_this_world)"));
  CHECK(contains(unknown, "version of PyTorch"));
  CHECK(contains(refusal(operator_of("aten.default", 1, {read("self", 0)})), "no such operator"));
  CHECK(contains(refusal(relu({})), "argument self is missing"));
  CHECK(contains(refusal(relu({read("self", 0), whole("more", 1)})), "no argument more"));
  CHECK(contains(refusal(relu({read("self", 0), read("self", 0)})), "twice"));
  CHECK(contains(refusal(relu({given("self", std::monostate())})), "argument self is None"));
  CHECK(contains(refusal(relu({list_of_ints("self", {1})})), "argument self is a list"));
  CHECK(contains(refusal(relu({text("self", "x")})), "another type"));
  CHECK(contains(refusal(operator_of("aten.softmax.int", 1, {read("self", 0), given("dim", 1.5)})),
                 "argument dim"));
  CHECK_THROWS_AS(operator_forward(relu({read("self", 1)}), at::kCPU), InternalError);
  CHECK_THROWS_AS(run(relu({read("self", 0)}), {}), InternalError);
  CHECK(is_operator(relu({})));
  CHECK(is_operator(operator_of("_operator.mul", 0, {})));
  CHECK_FALSE(is_operator(operator_of("relu", 0, {})));
}

TEST_CASE("errors of LibTorch have the name of the node") {
  const Node embedding = operator_of("aten.embedding.default", 2, {read("weight", 0), read("indices", 1)});
  std::string message;
  try {
    run(embedding, {at::randn({10, 3}), at::tensor({10}, at::kLong)});
  } catch (const c10::Error& error) {
    message = error.what();
  }
  CHECK(contains(message, "out of range"));
  CHECK(contains(message, "node node_7 of module layer1.0"));
}

TEST_CASE("an input that the caller moves is released by the operator") {
  const auto forward = operator_forward(operator_of("aten.relu.default", 1, {read("self", 0)}), at::kCPU);
  const auto squared =
      operator_forward(operator_of("aten.mul.Tensor", 1, {read("self", 0), read("other", 0)}), at::kCPU);
  for (const auto& one : {forward, squared}) {
    at::Tensor x = at::randn({3});
    const c10::weak_intrusive_ptr<c10::TensorImpl> watched(x.getIntrusivePtr());
    Activations inputs;
    inputs.push_back(std::move(x));
    const Activations result = one(std::move(inputs), in_training());
    CHECK(watched.expired());
    CHECK(result.at(0).use_count() == 1);
  }
}

TEST_CASE("assertions about sizes and types compute nothing") {
  CHECK(run(operator_of("aten._assert_scalar.default", 1, {read("self", 0), text("assert_msg", "u0 >= 0")},
                        {{0}}),
            {number_tensor(false)})
            .empty());
  CHECK(run(operator_of("aten._assert_tensor_metadata.default", 1,
                        {read("a", 0), given("dtype", models::Dtype::int64)}, {{0}}),
            {at::randn({3})})
            .empty());
}

TEST_CASE("batch normalisation is as exported in training, and uses running statistics in evaluation") {
  const auto batch_norm = [](bool train, bool statistics) {
    return operator_of(
        "aten.batch_norm.default", 5,
        {read("input", 0), read("weight", 1), read("bias", 2),
         statistics ? read("running_mean", 3) : given("running_mean", std::monostate()),
         statistics ? read("running_var", 4) : given("running_var", std::monostate()),
         given("training", train), given("momentum", 0.3), given("eps", 1e-3), given("cudnn_enabled", true)});
  };
  const at::Tensor x = at::randn({5, 3, 4}), weight = random_leaf({3}), bias = random_leaf({3});
  for (const bool train : {true, false}) {
    for (const bool exported : {true, false}) {
      const auto statistics = [] { return std::pair{at::full({3}, 0.5), at::full({3}, 2.0)}; };
      const auto [mean, variance] = statistics();
      const auto [own_mean, own_variance] = statistics();
      const at::Tensor expected =
          at::batch_norm(x, weight, bias, mean, variance, train && exported, 0.3, 1e-3, true);
      check_same(run(batch_norm(exported, true), {x, weight, bias, own_mean, own_variance},
                     train ? in_training() : in_evaluation())
                     .at(0),
                 expected);
      check_same(own_mean, mean);
      check_same(own_variance, variance);
    }
  }
  const at::Tensor without = at::batch_norm(x, weight, bias, {}, {}, true, 0.3, 1e-3, true);
  check_same(run(batch_norm(true, false), {x, weight, bias, x, x}, in_evaluation()).at(0), without);
}

TEST_CASE("instance normalisation uses running statistics in evaluation if it has them") {
  const at::Tensor x = at::randn({4, 3, 5}), mean = at::full({3}, 0.5), variance = at::full({3}, 2.0);
  const auto instance_norm = [](bool statistics) {
    std::vector<Argument> arguments{read("input", 0)};
    for (const char* name : {"weight", "bias"}) arguments.push_back(given(name, std::monostate()));
    for (const char* name : {"running_mean", "running_var"})
      arguments.push_back(statistics ? read(name, arguments.size() - 2) : given(name, std::monostate()));
    arguments.insert(arguments.end(), {given("use_input_stats", true), given("momentum", 0.1),
                                       given("eps", 1e-5), given("cudnn_enabled", true)});
    return operator_of("aten.instance_norm.default", 3, arguments);
  };
  check_same(run(instance_norm(true), {x, mean, variance}, in_evaluation()).at(0),
             at::instance_norm(x, {}, {}, mean, variance, false, 0.1, 1e-5, true));
  CHECK(at::equal(mean, at::full({3}, 0.5)));
  check_same(run(instance_norm(false), {x, mean, variance}, in_evaluation()).at(0),
             at::instance_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, true));
}

TEST_CASE("synchronised batch normalisation over two halves is batch normalisation of the whole") {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{8, 3}, {8, 3, 4, 2}}) {
    for (const bool affine : {true, false}) {
      const at::Tensor x = random_leaf(sizes, at::kDouble);
      const at::Tensor weight = affine ? random_leaf({3}, at::kDouble) : at::Tensor();
      const at::Tensor bias = affine ? random_leaf({3}, at::kDouble) : at::Tensor();
      const at::Tensor mean = at::zeros({3}, at::kDouble), variance = at::ones({3}, at::kDouble);
      const at::Tensor expected =
          at::batch_norm(x, weight, bias, mean.clone(), variance.clone(), true, 0.3, 1e-3, false);
      const at::Tensor running = at::zeros({3}, at::kDouble), spread = at::ones({3}, at::kDouble);
      at::batch_norm(x.detach(), {}, {}, running, spread, true, 0.3, 1e-3, false);

      // the sums of the other half are added to those of this half
      const auto sums_of = [&](const at::Tensor& half) {
        std::vector<std::int64_t> others{0};
        for (std::int64_t i = 2; i < half.dim(); ++i) others.push_back(i);
        return at::cat(
            {half.sum(others), half.square().sum(others), at::full({1}, half.numel() / 3, at::kDouble)});
      };
      ForwardContext context = in_training();
      context.sum_over_replicas = [&](const at::Tensor& own) { return own + sums_of(x.slice(0, 5)); };
      std::vector<Argument> arguments{read("input", 0)};
      const auto add = [&](const char* name, bool is_there, std::size_t index) {
        arguments.push_back(is_there ? read(name, index) : given(name, std::monostate()));
      };
      add("weight", affine, 3);
      add("bias", affine, 4);
      add("running_mean", true, 1);
      add("running_var", true, 2);
      arguments.insert(arguments.end(), {given("training", true), given("momentum", 0.3), given("eps", 1e-3),
                                         given("cudnn_enabled", true)});
      Activations inputs{x.slice(0, 0, 5), mean, variance};
      if (affine) inputs.insert(inputs.end(), {weight, bias});
      const at::Tensor half =
          run(operator_of("aten.batch_norm.default", inputs.size(), arguments), inputs, context).at(0);
      CHECK(at::allclose(half, expected.slice(0, 0, 5), 1e-10, 1e-12));
      CHECK(at::allclose(mean, running, 1e-10, 1e-12));
      CHECK(at::allclose(variance, spread, 1e-10, 1e-12));
      const at::Tensor weights = at::randn(half.sizes(), at::kDouble);
      const auto gradient_of = [&](const at::Tensor& result) {
        x.mutable_grad().reset();
        result.backward(weights, /*retain_graph=*/true);
        return x.grad().clone();
      };
      CHECK(at::allclose(gradient_of(half), gradient_of(expected.slice(0, 0, 5)), 1e-9, 1e-11));
    }
  }
}

TEST_CASE("dropout draws by seed, path, step and sample, as the layer of trainyard does") {
  const at::Tensor samples = at::tensor({4, 9, 2, 7, 30, 31}, at::kLong), x = random_leaf({6, 5, 3});
  models::Layer row{};
  row.path = "node_7";
  row.kind = "dropout";
  row.dropout = 0.4;
  const at::Tensor expected = make_layer(row, {7, at::kFloat}).forward({x}, in_training(2, samples)).at(0);
  const at::Tensor result = run(dropout_node("dropout", 0.4), {x}, in_training(2, samples)).at(0);
  check_same(result, expected);
  CHECK(result.eq(0).any().item<bool>());
  check_same(run(dropout_node("dropout_", 0.4), {x.detach().clone()}, in_training(2, samples)).at(0),
             expected.detach());
  CHECK_FALSE(at::equal(run(dropout_node("dropout", 0.4), {x}, in_training(3, samples)).at(0), expected));
}

TEST_CASE("dropout of all kinds does not depend on the split of the batch, and is off in evaluation") {
  const at::Tensor samples = at::arange(10, 18), x = at::rand({8, 5, 6}, at::kDouble) + 1;
  for (const char* kind : {"dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout",
                           "alpha_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"}) {
    CAPTURE(kind);
    const auto part = [&](std::int64_t begin, std::int64_t end, double p = 0.5) {
      return run(dropout_node(kind, p), {x.slice(0, begin, end).clone()},
                 in_training(2, samples.slice(0, begin, end)))
          .at(0);
    };
    const at::Tensor all = part(0, 8);
    CHECK(at::equal(at::cat({part(0, 3), part(3, 4), part(4, 8)}), all));
    CHECK_FALSE(at::equal(all, x));
    CHECK(at::equal(part(0, 8, 0), x));
    CHECK(at::equal(part(0, 8, 1), at::zeros_like(x)));
    CHECK(at::equal(run(dropout_node(kind, 0.5), {x.clone()}, in_evaluation()).at(0), x));
    CHECK(at::equal(run(dropout_node(kind, 0.5, false), {x.clone()}).at(0), x));
  }
}

TEST_CASE("feature dropout drops whole channels, and alpha dropout keeps mean and variance") {
  const at::Tensor samples = at::arange(400), x = at::ones({400, 30, 4}, at::kDouble);
  const auto n = static_cast<double>(400 * 30);
  const at::Tensor channels = run(dropout_node("feature_dropout", 0.3), {x}, in_training(2, samples)).at(0);
  CHECK(at::equal(channels, channels.slice(2, 0, 1).expand_as(x)));
  const at::Tensor dropped = channels.select(2, 0).eq(0);
  CHECK(std::abs(dropped.sum().item<double>() / n - 0.3) < 5 * std::sqrt(0.3 * 0.7 / n));
  CHECK(channels.max().item<double>() == doctest::Approx(1 / 0.7));

  const at::Tensor normal = at::randn({400, 120}, at::kDouble);
  const at::Tensor kept = run(dropout_node("alpha_dropout", 0.3), {normal}, in_training(2, samples)).at(0);
  CHECK(std::abs(kept.mean().item<double>()) < 5 / std::sqrt(400 * 120));
  CHECK(std::abs(kept.var().item<double>() - 1) < 0.05);
}

TEST_CASE("dropout whose first dimension is not the batch is refused") {
  const auto refused = [](const at::Tensor& x) {
    return refusal([&] { run(dropout_node("dropout", 0.5), {x}, in_training(2, at::arange(4))); });
  };
  CHECK(contains(refused(at::ones({6, 4})), "node node_7"));
  CHECK(contains(refused(at::ones({6, 4})), "first dimension"));
  CHECK(contains(refused(at::ones({})), "first dimension"));
  CHECK(contains(refused(at::ones({4, 2}, at::kLong)), "floating-point"));
  CHECK(contains(
      refusal([] { run(dropout_node("dropout", 1.5), {at::ones({1})}, in_training(2, at::arange(1))); }),
      "probability"));
}

TEST_CASE("attention without dropout is that of LibTorch") {
  const Activations inputs{random_leaf({2, 3, 5, 8}), random_leaf({2, 3, 5, 8}), random_leaf({2, 3, 5, 8})};
  check_node(attention_node(3, 0, {given("is_causal", true)}), inputs, [](const Activations& x) {
    return at::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, true);
  });
  check_same(run(attention_node(3, 0.5), inputs, in_evaluation()).at(0),
             at::scaled_dot_product_attention(inputs[0], inputs[1], inputs[2]));
}

TEST_CASE("attention with dropout drops weights of attention, by sample") {
  const at::Tensor samples = at::arange(5, 65);
  const auto options = at::TensorOptions(at::kDouble);
  const at::Tensor query = at::randn({60, 4, 6, 8}, options);
  const at::Tensor mask = at::randn({6, 7}, options).masked_fill(at::eye(6, 7, at::kBool), -HUGE_VAL);
  const auto check = [&](std::int64_t heads, const at::Tensor& masked_by, bool causal,
                         std::optional<double> scale, bool grouped) {
    const at::Tensor key = at::randn({60, heads, 7, 8}, options);
    const at::Tensor values = at::eye(7, options).expand({60, heads, 7, 7});  // the result is the weights
    std::vector<Argument> more{given("is_causal", causal), given("enable_gqa", grouped)};
    if (masked_by.defined()) more.push_back(read("attn_mask", 3));
    if (scale) more.push_back(given("scale", *scale));
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      Activations inputs;
      for (const at::Tensor& one : {query, key, values}) inputs.push_back(one.slice(0, begin, end));
      if (masked_by.defined()) inputs.push_back(masked_by);
      return run(attention_node(inputs.size(), 0.25, more), inputs,
                 in_training(2, samples.slice(0, begin, end)))
          .at(0);
    };
    const at::Tensor expected = at::scaled_dot_product_attention(
        query, key, values, masked_by.defined() ? std::optional(masked_by) : std::nullopt, 0, causal, scale,
        grouped);
    const at::Tensor result = part(0, 60);
    const at::Tensor kept = result.ne(0), possible = expected.ne(0);
    CHECK(at::allclose(result, kept * expected / 0.75, 1e-9, 1e-12));
    const auto n = possible.sum().item<double>();
    CHECK(std::abs(kept.sum().item<double>() / n - 0.75) < 5 * std::sqrt(0.25 * 0.75 / n));
    CHECK(at::allclose(at::cat({part(0, 20), part(20, 60)}), result, 1e-12, 1e-14));
  };
  check(4, {}, false, {}, false);
  check(4, {}, true, 0.7, false);
  check(4, mask, false, {}, false);
  check(4, at::ones({6, 7}, at::kBool).tril(), false, {}, false);
  check(2, {}, false, {}, true);
}

TEST_CASE("attention with dropout gives 0 to a query that may see no key, with finite gradients") {
  const Activations inputs{random_leaf({2, 1, 3, 4}), random_leaf({2, 1, 3, 4}), random_leaf({2, 1, 3, 4}),
                           at::tensor({1, 0, 1}, at::kLong).to(at::kBool).view({3, 1}).expand({3, 3})};
  const at::Tensor result =
      run(attention_node(4, 0.5, {read("attn_mask", 3)}), inputs, in_training(2, at::arange(2))).at(0);
  CHECK(at::equal(result.select(2, 1), at::zeros({2, 1, 4})));
  result.sum().backward();
  for (std::size_t i = 0; i < 3; ++i) CHECK(inputs[i].grad().isfinite().all().item<bool>());
  CHECK(contains(refusal([&] {
                   run(attention_node(4, 0.5, {read("attn_mask", 3), given("is_causal", true)}), inputs,
                       in_training(2, at::arange(2)));
                 }),
                 "causal"));
}

TEST_CASE("other random numbers depend on seed, step and node only") {
  const at::Tensor x = at::full({50}, 0.5);
  const std::vector<Node> nodes{
      operator_of("aten.rand.default", 0, {list_of_ints("size", {50})}),
      operator_of("aten.randn_like.default", 1, {read("self", 0)}),
      operator_of("aten.bernoulli.default", 1, {read("self", 0)}),
      operator_of("aten.normal_.default", 1, {read("self", 0), given("std", 3.0)}),
      operator_of("aten.rrelu.default", 1, {read("self", 0), given("training", true)}),
  };
  for (const Node& one : nodes) {
    CAPTURE(one.kind);
    const auto draw = [&](std::int64_t step, std::uint64_t seed, const std::string& path) {
      Node changed = one;
      changed.path = path;
      ForwardContext context = in_training(step);
      context.seed = seed;
      const Activations inputs(one.reads.size(), one.kind == "aten.rrelu.default" ? -x : x.clone());
      return run(changed, inputs, context).at(0);
    };
    const at::Tensor first = draw(1, 7, "a");
    at::rand({3});
    CHECK(at::equal(draw(1, 7, "a"), first));
    CHECK_FALSE(at::equal(draw(2, 7, "a"), first));
    CHECK_FALSE(at::equal(draw(1, 8, "a"), first));
    CHECK_FALSE(at::equal(draw(1, 7, "b"), first));
  }
  ForwardContext captured = in_training();
  captured.step_on_device = at::zeros({}, at::kLong);
  CHECK_THROWS_AS(run(nodes[0], {}, captured), InternalError);
}

TEST_CASE("recurrent layers equal those of LibTorch") {
  const at::Tensor x = at::randn({3, 5, 4});
  const auto weights = [](std::int64_t gates, std::int64_t second_input) {
    Activations all;
    for (const std::int64_t inputs : {std::int64_t{4}, std::int64_t{4}, second_input, second_input})
      all.insert(all.end(), {at::randn({gates * 6, inputs}), at::randn({gates * 6, 6}),
                             at::randn({gates * 6}), at::randn({gates * 6})});
    return all;
  };
  const at::Tensor h = at::randn({4, 3, 6}), c = at::randn({4, 3, 6});
  const auto all = [&](Activations states, const Activations& params) {
    states.insert(states.begin(), x);
    states.insert(states.end(), params.begin(), params.end());
    return states;
  };
  const Activations of_lstm = weights(4, 12), of_gru = weights(3, 12), of_rnn = weights(1, 12);
  const Activations lstm = run(recurrent_node("lstm", 2, 16, true, 2), all({h, c}, of_lstm));
  const auto expected = at::lstm(x, {h, c}, of_lstm, true, 2, 0, true, true, true);
  check_same(lstm.at(0), std::get<0>(expected));
  check_same(lstm.at(2), std::get<2>(expected));
  check_same(run(recurrent_node("gru", 1, 16, true, 2), all({h}, of_gru)).at(0),
             std::get<0>(at::gru(x, h, of_gru, true, 2, 0, true, true, true)));
  check_same(run(recurrent_node("rnn_tanh", 1, 16, true, 2), all({h}, of_rnn)).at(0),
             std::get<0>(at::rnn_tanh(x, h, of_rnn, true, 2, 0, true, true, true)));

  // with dropout between the layers: the same numbers for the same step, none in evaluation
  const Node dropping = recurrent_node("lstm", 2, 16, true, 2, 0.5);
  const at::Tensor dropped = run(dropping, all({h, c}, of_lstm)).at(0);
  CHECK(at::equal(run(dropping, all({h, c}, of_lstm)).at(0), dropped));
  CHECK_FALSE(at::equal(run(dropping, all({h, c}, of_lstm), in_training(3)).at(0), dropped));
  CHECK(at::allclose(run(dropping, all({h, c}, of_lstm), in_evaluation()).at(0), std::get<0>(expected)));

  // a projection of the state from 6 to 2 numbers
  const Activations projecting{at::randn({24, 4}), at::randn({24, 2}), at::randn({24}), at::randn({24}),
                               at::randn({2, 6})};
  const at::Tensor narrow = at::randn({1, 3, 2}), cell = at::randn({1, 3, 6});
  check_same(run(recurrent_node("lstm", 2, 5, false, 1), all({narrow, cell}, projecting)).at(0),
             std::get<0>(at::lstm(x, {narrow, cell}, projecting, true, 1, 0, true, false, true)));
}

TEST_CASE("weights of a recurrent layer with wrong shapes are refused before the call") {
  const at::Tensor x = at::randn({3, 5, 4}), h = at::randn({1, 3, 6}), c = at::randn({1, 3, 6});
  const Activations right{at::randn({24, 4}), at::randn({24, 6}), at::randn({24}), at::randn({24})};
  const auto lstm = [&](const at::Tensor& input, const Activations& states, const Activations& weights,
                        std::int64_t layers = 1) {
    Activations inputs{input, states[0], states[1]};
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    return refusal([&] { run(recurrent_node("lstm", 2, weights.size(), false, layers), inputs); });
  };
  CHECK(lstm(x, {h, c}, right).empty());
  for (std::size_t i = 0; i < right.size(); ++i) {
    CAPTURE(i);
    Activations wrong = right;
    wrong[i] = wrong[i].slice(0, 1);
    CHECK(contains(lstm(x, {h, c}, wrong), "a weight of the recurrent layer has sizes"));
    wrong[i] = right[i].to(at::kDouble);
    CHECK(contains(lstm(x, {h, c}, wrong), "different types"));
  }
  CHECK(contains(lstm(at::randn({3, 5, 7}), {h, c}, right), "instead of [24, 7]"));
  CHECK(contains(lstm(x, {h, c}, {right[0]}), "1 weights"));
  CHECK(contains(lstm(x, {h.slice(1, 1), c}, right), "a state"));
  CHECK(contains(lstm(x, {h, c[0]}, right), "a state"));
  CHECK(contains(lstm(x[0], {h, c}, right), "three dimensions"));
  CHECK_FALSE(lstm(x, {h, c}, right, std::numeric_limits<std::int64_t>::max()).empty());
}
