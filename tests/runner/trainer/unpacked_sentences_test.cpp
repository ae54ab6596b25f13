// Sentences encoded in groups of similar lengths, as on the CPU, or without reading their lengths, as on a
// GPU. States and gradients are those of packed sentences, with any padding. The CPU tests the second way,
// too, because steps that may be replayed use it.
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "models/chain.h"
#include "models/networks/network.h"
#include "runner/data/task.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/fake_graph.h"
#include "tests/runner/support/operations_of.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::unpacked_sentences_test {

using networks::Activations;
using networks::ForwardContext;
using testing::largest;

ForwardContext unseen() {
  ForwardContext context;
  context.step_on_device = at::zeros({}, at::kLong);
  return context;
}

struct Encoding {
  Activations outputs;                // y unless only the last state is used, h, c
  std::vector<at::Tensor> gradients;  // of x and the weights, for a fixed function of the outputs
};

using Encoder = std::function<Activations(const at::Tensor& x, const at::Tensor& lengths)>;

Encoder encoder_of(const networks::Layer& layer, const ForwardContext& context) {
  return [&layer, context](const at::Tensor& x, const at::Tensor& lengths) {
    return layer.forward({x, lengths}, context);
  };
}

// PyTorch's way: the tokens at each position in one product, the longest sentence first.
Encoder packed_encoder(const networks::Layer& layer, bool last) {
  return [&layer, last](const at::Tensor& x, const at::Tensor& lengths) {
    std::vector<at::Tensor> weights;
    for (const auto& parameter : layer.parameters) weights.push_back(parameter.value);
    const auto [sorted, order] = lengths.clamp_min(1).sort(/*stable=*/true, 0, /*descending=*/true);
    const at::Tensor back = order.argsort(),
                     zeros = at::zeros({1, x.size(0), weights[1].size(1)}, x.options());
    const auto [data, sizes] =
        at::_pack_padded_sequence(x.index_select(0, order), sorted, /*batch_first=*/true);
    const auto [y, h, c] = at::lstm(data, sizes, {zeros, zeros}, weights, true, 1, 0, true, false);
    Activations outputs{h.squeeze(0).index_select(0, back), c.squeeze(0).index_select(0, back)};
    const at::Tensor padded =
        std::get<0>(at::_pad_packed_sequence(y, sizes, /*batch_first=*/true, 0, x.size(1)));
    if (!last) outputs.insert(outputs.begin(), padded.index_select(0, back));
    return outputs;
  };
}

Encoding encode(const networks::Layer& layer, const at::Tensor& x, const at::Tensor& lengths,
                const Encoder& encoder) {
  const at::Tensor input = x.detach().clone().requires_grad_();
  Encoding encoding;
  encoding.outputs = encoder(input, lengths);
  at::Tensor sum = at::zeros({}, x.options());
  for (const at::Tensor& output : encoding.outputs)
    sum = sum + (output * at::arange(output.numel(), x.options()).sin().view(output.sizes())).sum();
  sum.backward();
  encoding.gradients.push_back(input.grad());
  for (const auto& parameter : layer.parameters) {
    encoding.gradients.push_back(parameter.value.grad().clone());
    parameter.value.mutable_grad().reset();
  }
  return encoding;
}

void check_near(const std::vector<at::Tensor>& ones, const std::vector<at::Tensor>& others,
                double tolerance) {
  REQUIRE(ones.size() == others.size());
  for (std::size_t i = 0; i < ones.size(); ++i) {
    CAPTURE(i);
    REQUIRE(ones[i].sizes() == others[i].sizes());
    CHECK(largest(ones[i] - others[i]) <= tolerance * (1 + largest(ones[i])));
  }
}

std::vector<std::int64_t> many_lengths() {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < 70; ++i) lengths.push_back(1 + i * 7 % 11);
  return lengths;
}

TEST_CASE(
    "encoders give the states and gradients of packed sentences, in groups and without reading lengths") {
  struct Case {
    const char* name;
    std::vector<std::int64_t> lengths;
    std::int64_t columns;
  };
  const std::vector<Case> cases{{"odd lengths", {3, 1, 5, 2}, 5},    {"one token", {1}, 1},
                                {"one token, padded", {1}, 4},       {"equal lengths", {4, 4, 4}, 4},
                                {"padded further", {2, 7}, 16},      {"a sentence without tokens", {0, 2}, 3},
                                {"three groups", many_lengths(), 12}};
  for (const Case& each : cases) {
    for (const bool last : {false, true}) {
      for (const auto& [dtype, tolerance] : {std::pair(at::kDouble, 1e-14), std::pair(at::kFloat, 2e-6)}) {
        for (const std::int64_t inputs : {5, 8}) {
          CAPTURE(each.name);
          CAPTURE(last);
          CAPTURE(inputs);
          const auto graph = models::Chain({.image = {}, .vocabulary = 9, .source_length = 5})
                                 .source_embedding(inputs)
                                 .encoder_lstm(7, last)
                                 .graph();
          const networks::Layer layer = networks::make_layer(graph.nodes.back(), {3, dtype});
          const at::Tensor lengths = at::tensor(each.lengths, at::kLong);
          // Values that are not 0 in the padding.
          const at::Tensor x = at::arange(lengths.size(0) * each.columns * inputs, dtype)
                                   .cos()
                                   .view({lengths.size(0), each.columns, inputs});
          const at::Tensor padding =
              at::arange(each.columns).unsqueeze(0).ge(lengths.clamp_min(1).unsqueeze(1)).unsqueeze(2);
          const Encoding packed = encode(layer, x, lengths, packed_encoder(layer, last));
          for (const ForwardContext& context : {ForwardContext(), unseen()}) {
            const Encoding ours = encode(layer, x, lengths, encoder_of(layer, context));
            check_near(packed.outputs, ours.outputs, tolerance);
            check_near(packed.gradients, ours.gradients, tolerance);
            CHECK(largest(ours.gradients[0] * padding) == 0);  // exactly
            if (!last) CHECK(largest(ours.outputs[0] * padding) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("between any two layers of Seq2Seq the activations are the same with and without reading lengths") {
  testing::ParityModel model = testing::parity_model("seq2seq");
  const models::Graph graph = models::find_model(model.name).graph(model.hyperparameters, model.input);
  const Batch batch =
      testing::data_of(model, 6, at::kDouble, false)->padded_like(at::arange(6))->gather(at::arange(6));
  ForwardContext seen;
  seen.step = 9;
  seen.samples = batch.samples;
  ForwardContext not_seen = seen;
  not_seen.step = -1;
  not_seen.step_on_device = at::full({}, 9, at::kLong);
  Activations grouped = batch.inputs, free = batch.inputs;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    CAPTURE(i);
    const auto node = networks::build_network(graph, {5, at::kDouble}, models::NodeRange{i, i + 1});
    grouped = node.forward(grouped, seen);
    free = node.forward(free, not_seen);
    check_near(grouped, free, 1e-14);
  }
}

struct Trained {
  std::vector<double> losses, right;  // per epoch
  std::vector<at::Tensor> parameters;
  testing::Counts counts;
};

// Trains four epochs with nine batches of 5 sentence pairs and one of 2, with dropout.
Trained train(const Connections& ranks, bool replays, std::int64_t micro_batches = 1) {
  const testing::ParityModel model = testing::parity_model("seq2seq");
  experiments::Run run = testing::parity_run(model, {});
  run.strategy.replicas = ranks.mesh.replicas;
  run.global_batch = 5;
  run.gradient_accumulation = micro_batches;
  Trainer trainer(resolve(run), model.input, ranks, at::kDouble);
  Trained trained;
  if (replays) trainer.capture_steps(testing::fake_graphs(trained.counts));
  const auto data = testing::data_of(model, 47, at::kDouble, false);
  const Sampler sampler(47, 5, ranks.position.replica, ranks.mesh.replicas);
  for (int epoch = 1; epoch <= 4; ++epoch) {
    trainer.train_epoch(*data, epoch, sampler, [](std::int64_t, const MetricSums&) {});
    const MetricSums sums = trainer.take_metrics();
    trained.losses.push_back(sums.loss());
    trained.right.push_back(static_cast<double>(sums.correct().value_or(-1)));
  }
  trained.parameters = testing::values_of(trainer);
  return trained;
}

void check_equal(const Trained& plain, const Trained& replayed) {
  CHECK(plain.counts.replayed == 0);
  CHECK(replayed.counts.captured > 1);  // shapes
  CHECK(replayed.counts.replayed > 20);
  for (std::size_t i = 0; i < plain.losses.size(); ++i)
    CHECK(std::abs(plain.losses[i] - replayed.losses[i]) <= 1e-12 * plain.losses[i]);
  CHECK(plain.right == replayed.right);
  check_near(plain.parameters, replayed.parameters, 1e-12);
}

TEST_CASE("replayed steps with padded sentences train as grouped sentences do: losses, tokens, weights") {
  const Connections alone = unconnected();
  for (const std::int64_t micro_batches : {1, 2})
    check_equal(train(alone, false, micro_batches), train(alone, true, micro_batches));
}

TEST_CASE("replicas replay the same steps, whatever the lengths of their sentences") {
  const Trained plain = train(unconnected(), false);
  std::vector<Trained> trained(2);
  testing::run_mesh({.replicas = 2}, [&](const Connections& ranks) {
    trained.at(static_cast<std::size_t>(ranks.position.replica)) = train(ranks, true);
  });
  CHECK(trained[0].counts.captured == trained[1].counts.captured);
  CHECK(trained[0].counts.replayed == trained[1].counts.replayed);
  CHECK(trained[0].counts.replayed > 20);
  for (std::size_t i = 0; i < plain.losses.size(); ++i) {
    const double loss = trained[0].losses[i] + trained[1].losses[i];
    CHECK(std::abs(plain.losses[i] - loss) <= 1e-12 * loss);
  }
  for (const Trained& each : trained) check_near(plain.parameters, each.parameters, 1e-12);
}

TEST_CASE("a replayable step of sentences reads neither values nor lengths") {
  const testing::ParityModel model = testing::parity_model("seq2seq");
  const auto network = networks::build_network(model.name, model.hyperparameters, model.input, 1, at::kFloat);
  const auto data = testing::data_of(model, 20, at::kFloat, false)->padded_like(at::arange(12));
  networks::ForwardContext context;
  context.samples = at::arange(12);
  context.step_on_device = at::full({}, 3, at::kLong);
  const auto called = testing::operations_of([&] {
    const Batch batch = data->gather(context.samples);
    const at::Tensor logits = network.forward(batch.inputs, context).front();
    const Task& task = find_task("translation");
    task.counts[0].of({logits}, batch.targets);
    task.loss_sum(logits, batch.targets).backward();
  });
  CHECK(called.contains("aten::lstm"));
  for (const char* waits :
       {"aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::_pack_padded_sequence"}) {
    CAPTURE(waits);
    CHECK(!called.contains(waits));
  }
}

}  // namespace trainyard::runner::unpacked_sentences_test
