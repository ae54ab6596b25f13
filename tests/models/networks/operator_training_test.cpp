// Operators of PyTorch that differ between training and evaluation, or draw random numbers.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/networks/operator_nodes.h"

namespace trainyard::operator_nodes {

namespace {

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

TEST_CASE("batch normalisation does what its node says, in training and in evaluation") {
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
      const at::Tensor expected = at::batch_norm(x, weight, bias, mean, variance, exported, 0.3, 1e-3, true);
      check_same(run(batch_norm(exported, true), {x, weight, bias, own_mean, own_variance},
                     train ? in_training() : in_evaluation())
                     .at(0),
                 expected);
      check_same(own_mean, mean);
      check_same(own_variance, variance);
    }
  }
  ForwardContext alone = in_training();  // one replica with synchronised statistics
  alone.sum_over_replicas = [](const at::Tensor& own) { return own; };
  const at::Tensor mean = at::full({3}, 0.5), variance = at::full({3}, 2.0);
  const at::Tensor synchronised = run(batch_norm(true, true), {x, weight, bias, mean, variance}, alone).at(0);
  const at::Tensor own_mean = at::full({3}, 0.5), own_variance = at::full({3}, 2.0);
  CHECK(at::allclose(synchronised,
                     at::batch_norm(x, weight, bias, own_mean, own_variance, true, 0.3, 1e-3, true)));
  CHECK(at::allclose(mean, own_mean));
  CHECK(at::allclose(variance, own_variance));
  const at::Tensor without = at::batch_norm(x, weight, bias, {}, {}, true, 0.3, 1e-3, true);
  check_same(run(batch_norm(true, false), {x, weight, bias, x, x}, in_evaluation()).at(0), without);
}

TEST_CASE("instance normalisation uses running statistics if its node says so") {
  const at::Tensor x = at::randn({4, 3, 5}), mean = at::full({3}, 0.5), variance = at::full({3}, 2.0);
  const auto instance_norm = [](bool statistics, bool of_input) {
    std::vector<Argument> arguments{read("input", 0)};
    for (const char* name : {"weight", "bias"}) arguments.push_back(given(name, std::monostate()));
    for (const char* name : {"running_mean", "running_var"})
      arguments.push_back(statistics ? read(name, arguments.size() - 2) : given(name, std::monostate()));
    arguments.insert(arguments.end(), {given("use_input_stats", of_input), given("momentum", 0.1),
                                       given("eps", 1e-5), given("cudnn_enabled", true)});
    return operator_of("aten.instance_norm.default", 3, arguments);
  };
  check_same(run(instance_norm(true, false), {x, mean, variance}, in_evaluation()).at(0),
             at::instance_norm(x, {}, {}, mean, variance, false, 0.1, 1e-5, true));
  CHECK(at::equal(mean, at::full({3}, 0.5)));
  check_same(run(instance_norm(false, true), {x, mean, variance}, in_evaluation()).at(0),
             at::instance_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, true));
}

TEST_CASE("dropout draws by seed, path, step and sample, as the layer of trainyard does") {
  const at::Tensor samples = at::tensor({4, 9, 2, 7, 30, 31}, at::kLong), x = random_leaf({6, 5, 3});
  models::Node row{};
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
                           "alpha_dropout_", "feature_alpha_dropout"}) {
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
    return tests::user_error_of(
        [&] { run(dropout_node("dropout", 0.5), {x}, in_training(2, at::arange(4))); });
  };
  CHECK(contains(refused(at::ones({6, 4})), "node node_7"));
  CHECK(contains(refused(at::ones({6, 4})), "first dimension"));
  CHECK(contains(refused(at::ones({})), "first dimension"));
  CHECK(contains(refused(at::ones({4, 2}, at::kLong)), "floating-point"));
  CHECK(contains(tests::user_error_of([] {
                   run(dropout_node("dropout", 1.5), {at::ones({1})}, in_training(2, at::arange(1)));
                 }),
                 "probability"));
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

TEST_CASE("dropout of attention does not depend on padding behind queries and keys") {
  const at::Tensor query = at::randn({3, 2, 9, 4}), key = at::randn({3, 2, 8, 4}),
                   value = at::randn({3, 2, 8, 4});
  const auto attend = [&](std::int64_t queries, std::int64_t keys) {
    const at::Tensor seen = at::arange(keys).lt(5);
    const Activations inputs{query.slice(2, 0, queries), key.slice(2, 0, keys), value.slice(2, 0, keys),
                             seen.expand({queries, keys})};
    return run(attention_node(4, 0.5, {read("attn_mask", 3)}), inputs, in_training(2, at::arange(3))).at(0);
  };
  const at::Tensor without = attend(6, 5);
  CHECK(without.ne(attend(6, 5).roll(1, 0)).any().item<bool>());
  CHECK(at::allclose(attend(9, 8).slice(2, 0, 6), without));
}

TEST_CASE("attention with dropout gives 0 to a query that may see no key, with finite gradients") {
  const Activations inputs{random_leaf({2, 1, 3, 4}), random_leaf({2, 1, 3, 4}), random_leaf({2, 1, 3, 4}),
                           at::tensor({1, 0, 1}, at::kLong).to(at::kBool).view({3, 1}).expand({3, 3})};
  const at::Tensor result =
      run(attention_node(4, 0.5, {read("attn_mask", 3)}), inputs, in_training(2, at::arange(2))).at(0);
  CHECK(at::equal(result.select(2, 1), at::zeros({2, 1, 4})));
  result.sum().backward();
  for (std::size_t i = 0; i < 3; ++i) CHECK(inputs[i].grad().isfinite().all().item<bool>());
  CHECK(contains(tests::user_error_of([&] {
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

// A batch of three samples in a dimension of outer · 3 · inner slices: sample (j / inner) % 3 has slice j.
TEST_CASE("random numbers with a rule depend on the sample: a batch has those of its parts") {
  const at::Tensor samples = at::tensor({11, 4, 7}, at::kLong);
  struct Sizes {
    models::SampleRule rule;
    std::int64_t outer, inner;
  };
  for (const auto& [rule, outer, inner] : {Sizes{{0, 0}, 1, 1}, Sizes{{1, 0}, 1, 1}, Sizes{{1, 0}, 1, 4},
                                           Sizes{{1, 1}, 4, 1}, Sizes{{2, 2}, 5, 2}})
    for (const char* kind :
         {"rand", "randn_like", "bernoulli", "normal_", "uniform_", "dropout", "dropout_"}) {
      CAPTURE(std::string(kind));
      CAPTURE(rule.dimension);
      CAPTURE(outer);
      const auto drawn = [&](const at::Tensor& of) {
        const std::int64_t count = of.numel();
        std::vector<std::int64_t> sizes{6, 6, 20};
        sizes[static_cast<std::size_t>(rule.dimension)] = outer * count * inner;
        const at::Tensor x = at::full(sizes, 0.5);
        const std::string name = kind;
        Node node =
            name == "rand"
                ? operator_of("aten.rand.default", 0, {list_of_ints("size", {sizes[0], sizes[1], sizes[2]})})
            : name.starts_with("dropout") ? dropout_node(name, 0.5)
                                          : operator_of("aten." + name + ".default", 1, {read("self", 0)});
        node.by_sample = rule;
        const at::Tensor made = run(node, Activations(node.reads.size(), x), in_training(3, of)).at(0);
        CHECK(made.sizes() == at::IntArrayRef(sizes));
        return made.unflatten(rule.dimension, {outer, count, inner})
            .movedim(rule.dimension + 1, 0)
            .contiguous();
      };
      const at::Tensor whole = drawn(samples);
      CHECK(at::equal(whole, at::cat({drawn(samples.slice(0, 0, 1)), drawn(samples.slice(0, 1, 3))})));
      CHECK_FALSE(at::equal(whole[0], whole[1]));
      CHECK(at::equal(whole, drawn(samples)));
    }
  Node wrong = operator_of("aten.randn_like.default", 1, {read("self", 0)});
  wrong.by_sample = models::SampleRule{0, 2};
  CHECK(contains(tests::user_error_of([&] {
                   run(wrong, {at::zeros({7, 2})}, in_training(1, samples));
                 }),
                 "its numbers have sizes [7, 2], but the batch has 3 samples"));
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

  // with dropout between the layers: the same numbers for the same step
  const Node dropping = recurrent_node("lstm", 2, 16, true, 2, 0.5);
  const at::Tensor dropped = run(dropping, all({h, c}, of_lstm)).at(0);
  CHECK(at::equal(run(dropping, all({h, c}, of_lstm)).at(0), dropped));
  CHECK_FALSE(at::equal(run(dropping, all({h, c}, of_lstm), in_training(3)).at(0), dropped));

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
    return tests::user_error_of(
        [&] { run(recurrent_node("lstm", 2, weights.size(), false, layers), inputs); });
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

}  // namespace trainyard::operator_nodes
