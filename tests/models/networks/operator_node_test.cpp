// Operators of PyTorch as nodes of a graph, against direct calls of LibTorch.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/models/networks/operator_nodes.h"

namespace trainyard::operator_nodes {

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
  CHECK(contains(tests::user_error_of([&] { forward({x}, in_training()); }),
                 "list of 2 tensors, but the graph has 3"));
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

TEST_CASE("a view of values that are not contiguous is a copy, with the same gradients") {
  check_node(operator_of("aten.view.default", 1, {read("self", 0), list_of_ints("size", {12})}),
             {random_leaf({3, 4}).detach().t().requires_grad_()},
             [](const Activations& x) { return x[0].contiguous().view({12}); });
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
  CHECK(number("_operator.mul", 1.5, 3).item<double>() == 4.5);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(contains(tests::user_error_of([&] { integer("_operator.add", most, 1); }), "node node_7"));
  CHECK(contains(tests::user_error_of([&] { integer("_operator.mul", most, 2); }), "64 bits"));
  CHECK(contains(tests::user_error_of([&] { integer("_operator.floordiv", -most - 1, -1); }), "64 bits"));
  CHECK(contains(tests::user_error_of([&] { integer("_operator.mod", 1, 0); }), "divides by 0"));
  CHECK(contains(refusal(operator_of("_operator.matmul", 1, {read("a", 0)})), "unsupported scalar operator"));
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
  check_same(run(zeros({given("dtype", models::Dtype::int32)}), {}).at(0), at::zeros({2, 3}, at::kInt));
  check_same(run(zeros({given("device", models::RunDevice())}), {}).at(0), at::zeros({2, 3}));
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

}  // namespace trainyard::operator_nodes
