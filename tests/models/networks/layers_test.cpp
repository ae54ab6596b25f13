// Single layers: initial weights, dropout, batch normalisation, layers for texts.
#include <cmath>

#include <torch/csrc/autograd/variable.h>

#include "base/error.h"
#include "models/chain.h"
#include "models/networks/dropout.h"
#include "models/networks/layer_kernels.h"
#include "models/networks/network.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace {

using namespace trainyard;
using namespace trainyard::networks;
using models::Chain;
using models::InputShape;

const InputShape images{.image = {16, 6, 5}, .classes = 10};
const InputShape texts{.image = {},
                       .classes = 2,
                       .vocabulary = 400,
                       .target_vocabulary = 300,
                       .source_length = 5,
                       .target_length = 4};

Layer last_of(const Chain& chain, std::uint64_t seed = 3, at::ScalarType dtype = at::kDouble) {
  return make_layer(chain.graph().nodes.back(), {seed, dtype});
}

double largest(const at::Tensor& values) {
  return values.abs().max().item<double>();
}

// The variance of a uniform number in ±b is b²/3. Its standard error over n numbers is b² · √(4/45/n).
void check_uniform(const NamedParameter& parameter, double bound) {
  CAPTURE(parameter.name);
  const at::Tensor values = parameter.value.detach();
  const auto n = static_cast<double>(values.numel());
  CHECK(largest(values) <= bound);
  CHECK(largest(values) > bound * (1 - 10 / n));
  CHECK(std::abs(values.mean().item<double>()) < 5 * bound / std::sqrt(3 * n));
  CHECK(std::abs(values.square().mean().item<double>() - bound * bound / 3) <
        5 * bound * bound * std::sqrt(4.0 / 45 / n));
}

ForwardContext training(std::int64_t step, const at::Tensor& samples) {
  ForwardContext context;
  context.seed = 7;
  context.step = step;
  context.samples = samples;
  return context;
}

at::Tensor run(const Layer& layer, const at::Tensor& x, const ForwardContext& context = {}) {
  return layer.forward({x}, context).front();
}

}  // namespace

TEST_CASE("initial weights are uniform as in PyTorch: in ±1/√fan_in, those of an LSTM in ±1/√outputs") {
  const auto check = [](const Chain& chain, double fan_in, std::size_t parameters) {
    const Layer layer = last_of(chain);
    REQUIRE(layer.parameters.size() == parameters);
    for (const NamedParameter& parameter : layer.parameters) check_uniform(parameter, 1 / std::sqrt(fan_in));
  };
  check(Chain(images).flatten().linear(250), 16 * 6 * 5, 2);
  check(Chain(images).convolution(32), 16 * 9, 2);
  check(Chain(images).convolution(32, {.bias = false}), 16 * 9, 1);
  // for a transposed convolution PyTorch uses the second size of the weight, which is its outputs
  check(Chain(images).transposed_convolution(32, {.size = 3, .stride = 2, .padding = 1}, 11, 9), 32 * 9, 2);
  check(Chain(texts).source_embedding(20).encoder_lstm(30, true), 30, 4);
}

TEST_CASE(
    "initial embeddings are normal with a zero row for padding, and normalisation begins with 1 and 0") {
  const at::Tensor weight = last_of(Chain(texts).mean_embedding(300)).parameters[0].value.detach();
  CHECK(largest(weight[0]) == 0);
  const at::Tensor words = weight.slice(0, 1);
  const auto n = static_cast<double>(words.numel());
  CHECK(std::abs(words.mean().item<double>()) < 5 / std::sqrt(n));
  CHECK(std::abs(words.square().mean().item<double>() - 1) < 5 * std::sqrt(2 / n));
  CHECK(std::abs(words.pow(4).mean().item<double>() - 3) <
        5 * std::sqrt(96 / n));  // kurtosis of the normal distribution
  const Layer normalisation = last_of(Chain(images).batch_normalisation());
  CHECK(at::equal(normalisation.parameters[0].value, at::ones({16}, at::kDouble)));
  CHECK(at::equal(normalisation.parameters[1].value, at::zeros({16}, at::kDouble)));
  CHECK(normalisation.buffers[0].name == "0.running_mean");
  CHECK(at::equal(normalisation.buffers[1].value, at::ones({16}, at::kDouble)));
}

TEST_CASE("weights with a rule are normal with its deviation, and the bias begins with 0") {
  const Layer linear = last_of(Chain(texts).token_embedding(64, false).normal(0.02).linear(48).normal(0.01));
  const Layer depthwise =
      last_of(Chain(images).convolution(96).convolution(96, {.bias = false, .groups = 96}).normal(0.01));
  CHECK(linear.parameters[0].value.sizes() == at::IntArrayRef({48, 64}));
  CHECK(depthwise.parameters[0].value.sizes() == at::IntArrayRef({96, 1, 3, 3}));
  CHECK(largest(linear.parameters[1].value) == 0);
  for (const Layer* layer : {&linear, &depthwise}) {
    const at::Tensor values = layer->parameters[0].value.detach();
    const auto n = static_cast<double>(values.numel());  // standard errors of a normal mean and variance
    CHECK(std::abs(values.mean().item<double>()) < 5 * 0.01 / std::sqrt(n));
    CHECK(std::abs(values.square().mean().item<double>() - 1e-4) < 5 * 1e-4 * std::sqrt(2 / n));
  }
}

TEST_CASE("causal attention sees no later position, and its dropout keeps or drops what a position sees") {
  Chain chain(texts);
  chain.token_embedding(24, false).causal_attention(2, 0.25);
  const Layer attention = last_of(chain);
  const at::Tensor samples = at::arange(300), x = at::randn({300, 5, 24}, at::kDouble);
  at::Tensor changed = x.clone();
  changed.slice(1, 3).add_(1);
  for (const bool trains : {false, true}) {
    ForwardContext context = training(1, samples);
    context.training = trains;
    const at::Tensor y = run(attention, x, context), z = run(attention, changed, context);
    CHECK(largest(y.slice(1, 0, 3) - z.slice(1, 0, 3)) == 0);
    CHECK(largest(y.slice(1, 3) - z.slice(1, 3)) > 0.1);
  }
  // the first position sees itself with weight 1
  const at::Tensor own = x.select(1, 0).slice(1, 16),
                   seen = run(attention, x, training(1, samples)).select(1, 0);
  const at::Tensor heads = (seen / own).view({300, 2, 4});
  CHECK(largest(heads - heads.slice(2, 0, 1)) < 1e-12);
  const at::Tensor kept = heads.select(2, 0).gt(0.5);
  CHECK(largest(heads.select(2, 0) - kept.to(at::kDouble) / 0.75) < 1e-12);
  CHECK(std::abs(kept.to(at::kDouble).mean().item<double>() - 0.75) < 5 * std::sqrt(0.75 * 0.25 / 600));
}

TEST_CASE("dropout drops its share of the values and keeps the mean") {
  const at::Tensor like = at::empty({200, 501}, at::kDouble);
  for (const double p : {0.1, 0.5, 0.9}) {
    CAPTURE(p);
    const at::Tensor factors = dropout_factors(like, at::arange(200), {11, 5, p});
    const auto n = static_cast<double>(factors.numel());
    const double dropped = factors.eq(0).sum().item<double>() / n;
    CHECK(std::abs(dropped - p) < 5 * std::sqrt(p * (1 - p) / n));
    CHECK(factors.max().item<double>() == doctest::Approx(1 / (1 - p)));
    // neighbours in a sample, and in a batch, are independent: p² of the pairs are dropped together
    const at::Tensor zeros = factors.eq(0).to(at::kDouble);
    const double error = 5 * std::sqrt(1 / n);
    CHECK(std::abs((zeros.slice(1, 1) * zeros.slice(1, 0, 500)).mean().item<double>() - p * p) < error);
    CHECK(std::abs((zeros.slice(0, 1) * zeros.slice(0, 0, 199)).mean().item<double>() - p * p) < error);
  }
}

TEST_CASE(
    "dropout depends on seed, step, sample and path, and not on the split, order or padding of a batch") {
  const Layer layer = last_of(Chain(texts).dropout(0.5));
  const at::Tensor samples = at::tensor({4, 9, 2, 7, 30, 31}, at::kLong);
  const at::Tensor x = at::rand({6, 5, 3}, at::kDouble) + 1;
  const at::Tensor whole = run(layer, x, training(2, samples));
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    return run(layer, x.slice(0, begin, end), training(2, samples.slice(0, begin, end)));
  };
  CHECK(at::equal(at::cat({part(0, 1), part(1, 4), part(4, 6)}), whole));
  CHECK(at::equal(run(layer, x.flip(0), training(2, samples.flip(0))), whole.flip(0)));
  const at::Tensor longer = at::cat({x, at::ones({6, 4, 3}, at::kDouble)}, 1);
  CHECK(at::equal(run(layer, longer, training(2, samples)).slice(1, 0, 5), whole));
  CHECK(at::equal(run(layer, x.to(at::kFloat), training(2, samples)).eq(0), whole.eq(0)));

  CHECK(!at::equal(run(layer, x, training(3, samples)), whole));
  CHECK(!at::equal(run(layer, x, training(2, samples + 100)), whole));
  const Layer elsewhere = last_of(Chain(texts).relu().dropout(0.5));
  CHECK(!at::equal(run(elsewhere, x, training(2, samples)), whole));
  ForwardContext other_seed = training(2, samples);
  other_seed.seed = 8;
  CHECK(!at::equal(run(layer, x, other_seed), whole));

  ForwardContext evaluation = training(2, samples);
  evaluation.training = false;
  CHECK(at::equal(run(layer, x, evaluation), x));
  CHECK_THROWS_AS(run(layer, x), InternalError);  // the numbers of the samples are missing
}

TEST_CASE("batch normalisation gives mean 0 and variance 1, and updates running statistics as PyTorch does") {
  const Layer layer = last_of(Chain(images).batch_normalisation());
  const at::Tensor x = at::rand({4, 16, 6, 5}, at::kDouble) * 3 + 2;
  const at::Tensor y = run(layer, x);
  const at::Tensor mean = x.mean(at::IntArrayRef{0, 2, 3}), variance = x.var(at::IntArrayRef{0, 2, 3}, true);
  const double n = 4 * 6 * 5;
  CHECK(largest(y.mean(at::IntArrayRef{0, 2, 3})) < 1e-12);
  const at::Tensor biased = variance * ((n - 1) / n);
  CHECK(at::allclose(y.var(at::IntArrayRef{0, 2, 3}, false), biased / (biased + 1e-5)));
  CHECK(at::allclose(layer.buffers[0].value, mean * 0.1));
  CHECK(at::allclose(layer.buffers[1].value, variance * 0.1 + 0.9));
  ForwardContext evaluation;
  evaluation.training = false;
  const auto of_channel = [](const at::Tensor& t) { return t.view({1, 16, 1, 1}); };
  CHECK(at::allclose(run(layer, x, evaluation),
                     (x - of_channel(mean * 0.1)) / of_channel(variance * 0.1 + 0.9 + 1e-5).sqrt()));
  CHECK(at::allclose(layer.buffers[0].value, mean * 0.1));
}

TEST_CASE(
    "batch normalisation that is synchronised over parts is that of the whole batch, even with an empty "
    "part") {
  // The parts run one after the other. A first pass collects their sums, with the same arithmetic.
  const at::Tensor x = at::rand({6, 16, 6, 5}, at::kDouble) * 3 + 2;
  const at::Tensor target = at::rand({6, 16, 6, 5}, at::kDouble);
  const Layer whole = last_of(Chain(images).batch_normalisation());
  const at::Tensor whole_x = x.clone().requires_grad_();
  const at::Tensor whole_y = run(whole, whole_x);
  (whole_y * target).sum().backward();

  const Layer parts = last_of(Chain(images).batch_normalisation());
  const at::Tensor parts_x = x.clone().requires_grad_();
  const std::vector<std::pair<std::int64_t, std::int64_t>> ranges{{0, 4}, {4, 4}, {4, 6}};
  std::vector<at::Tensor> own;
  ForwardContext gather;
  gather.sum_over_replicas = [&](const at::Tensor& sums) {
    own.push_back(sums);
    return sums + 1;  // the result is not used
  };
  const Layer listener = last_of(Chain(images).batch_normalisation());
  for (const auto& [begin, end] : ranges) run(listener, parts_x.slice(0, begin, end), gather);
  REQUIRE(own.size() == 3);
  at::Tensor total = own[0] + own[1] + own[2];
  ForwardContext synchronised;
  synchronised.sum_over_replicas = [&](const at::Tensor&) { return total; };
  std::vector<at::Tensor> outputs;
  for (const auto& [begin, end] : ranges) {
    for (const NamedParameter& buffer : parts.buffers) {
      at::Tensor(buffer.value).copy_(buffer.name.ends_with("mean") ? at::zeros({16}) : at::ones({16}));
    }
    outputs.push_back(run(parts, parts_x.slice(0, begin, end), synchronised));
  }
  const at::Tensor parts_y = at::cat(outputs);
  (parts_y * target).sum().backward();
  CHECK(outputs[1].size(0) == 0);
  CHECK(largest(parts_y - whole_y) < 1e-12);
  CHECK(largest(parts_x.grad() - whole_x.grad()) < 1e-12);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(largest(parts.buffers[i].value - whole.buffers[i].value) < 1e-12);
    CHECK(largest(parts.parameters[i].value.grad() - whole.parameters[i].value.grad()) < 1e-10);
  }
}

TEST_CASE("the mean of the words ignores padding, which has no gradient, and is 0 for a text without words") {
  const Layer layer = last_of(Chain(texts).mean_embedding(3));
  const at::Tensor weight = layer.parameters[0].value;
  const at::Tensor tokens = at::tensor({5, 9, 0, 0, 0, 0, 0, 0, 7, 7, 8, 0}, at::kLong).view({3, 4});
  const at::Tensor y = run(layer, tokens);
  CHECK(at::allclose(y[0], (weight[5] + weight[9]) / 2));
  CHECK(largest(y[1]) == 0);
  CHECK(at::allclose(y[2], (weight[7] * 2 + weight[8]) / 3));
  y.sum().backward();
  const at::Tensor gradient = weight.grad().to_dense();
  CHECK(largest(gradient[0]) == 0);
  CHECK(at::allclose(gradient[7], at::full({3}, 2.0 / 3, at::kDouble)));
}

TEST_CASE("a transposed convolution with few outputs has the results and gradients of the plain operator") {
  for (const std::int64_t outputs : {1, 3, 5}) {
    CAPTURE(outputs);
    const TransposedConvolution how{2, 1, {1, 0}};
    const auto numbers = [](at::IntArrayRef sizes, double start) {
      return (at::arange(c10::multiply_integers(sizes), at::kDouble) + start).sin().view(sizes);
    };
    const at::Tensor images = numbers({2, 4, 5, 3}, 0).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor weights = numbers({2, outputs, 10, 5}, 7);
    std::vector<std::vector<at::Tensor>> found;
    for (const bool ours : {true, false}) {
      const at::Tensor x = images.clone().requires_grad_(),
                       weight = numbers({4, outputs, 3, 3}, 1).requires_grad_(),
                       bias = numbers({outputs}, 2).requires_grad_();
      const at::Tensor y =
          ours ? transposed_convolution(x, weight, bias, how)
               : at::conv_transpose2d(x, weight, bias, how.stride, how.padding, how.output_padding);
      REQUIRE(y.sizes() == weights.sizes());
      (y * weights).sum().backward();
      found.push_back({y.detach(), x.grad(), weight.grad(), bias.grad()});
    }
    for (std::size_t i = 0; i < found[0].size(); ++i) CHECK(largest(found[0][i] - found[1][i]) < 1e-12);
  }
}

TEST_CASE("the gradient of a mean of rows is that of embedding_bag, but has only the used rows") {
  const at::Tensor rows = at::tensor({4, 1, 4, 4, 8, 0, 1}, at::kLong);
  const at::Tensor starts = at::tensor({0, 3, 3, 5}, at::kLong);  // the second text is empty
  const at::Tensor weights = at::arange(4 * 5, at::kDouble).sin().view({4, 5});
  const at::Tensor ours = at::arange(9 * 5, at::kDouble).view({9, 5}).requires_grad_();
  const at::Tensor theirs = ours.detach().clone().requires_grad_();
  (mean_of_rows(ours, rows, starts) * weights).sum().backward();
  (std::get<0>(at::embedding_bag(theirs, rows, starts, false, /*mode=*/1)) * weights).sum().backward();
  CHECK(at::equal(ours.grad()._indices().flatten(), at::tensor({0, 1, 4, 8}, at::kLong)));
  CHECK(largest(ours.grad().to_dense() - theirs.grad()) < 1e-14);

  SUBCASE("even if two micro-batches add their gradients") {
    (mean_of_rows(ours, rows, starts) * weights).sum().backward();
    CHECK(largest(ours.grad().to_dense() - 2 * theirs.grad()) < 1e-14);
  }
}

TEST_CASE("the states of an encoder are those after the last word of each sentence, with any padding") {
  const Chain chain = Chain(texts).source_embedding(4).encoder_lstm(6, false).encoder_lstm(6, true);
  models::Graph graph = chain.graph();
  graph.outputs = {5, 6, 7, 8};  // h and c of both layers, after the inputs, the vectors and the lengths
  const Network network = build_network(graph, {3, at::kDouble});
  const auto encode = [&](const at::Tensor& source) {
    return network.forward({source, at::full({source.size(0), 2}, 9, at::kLong)});
  };
  const at::Tensor source = at::tensor({5, 3, 0, 0, 8, 7, 6, 3, 4, 0, 0, 0}, at::kLong).view({3, 4});
  const Activations together = encode(source);
  REQUIRE(together.size() == 4);
  const std::vector<std::int64_t> lengths{2, 4, 1};
  for (std::int64_t i = 0; i < 3; ++i) {
    const Activations alone =
        encode(source.slice(0, i, i + 1).slice(1, 0, lengths[static_cast<std::size_t>(i)]));
    for (std::size_t state = 0; state < 4; ++state) {
      CHECK(largest(alone[state][0] - together[state][i]) < 1e-12);
    }
  }
}
