// Replayed steps: which steps are replayed, and that training does not change.
#include "runner/trainer/cuda_graph_cache.h"

#include <array>
#include <string>

#include "models/catalogue.h"
#include "models/networks/network.h"
#include "runner/trainer/step_runner.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/fake_graph.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::cuda_graph_cache_test {

using testing::Counts;
using testing::fake_graphs;

models::InputShape images_of(const models::ImageShape& shape) {
  models::InputShape input;
  input.image = shape;
  input.classes = 10;
  return input;
}

TEST_CASE("steps are captured on a GPU if nothing in them needs the host") {
  struct Case {
    const char* model;
    std::int64_t stages;
    const char* device;
    const char* transport;
    const char* why_not;
  };
  const std::array cases{
      Case{"mlp", 1, "cuda:0", "none", ""},
      Case{"cnn", 1, "cuda:1", "nccl", ""},
      Case{"mlp", 1, "cpu", "none", "not a GPU"},
      Case{"mlp", 2, "cuda:0", "nccl", "stages"},
      Case{"vgg11", 1, "cuda:0", "gloo", "through the host"},
      Case{"nbow", 1, "cuda:0", "none", ""},
      Case{"seq2seq", 1, "cuda:0", "none", ""},
      Case{"seq2seq", 2, "cuda:0", "none", "stages"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.model);
    CAPTURE(each.device);
    experiments::Run run = testing::run_of(each.model, 1);
    run.strategy.stages = each.stages;
    const std::string why = why_not_captured(run, at::Device(each.device), each.transport);
    CAPTURE(why);
    if (*each.why_not == '\0')
      CHECK(why == "");
    else
      CHECK(why.find(each.why_not) != std::string::npos);
  }
}

struct Outcome {
  std::vector<at::Tensor> parameters;
  std::vector<double> losses;  // per epoch
  std::vector<std::int64_t> weights;
  std::int64_t steps = 0;
  Counts counts;
};

// Trains three epochs with 5 batches of 16 and one of 10. Models keep their dropout and batch normalisation.
Outcome train(const std::string& model, const experiments::Optimizer& optimizer, bool captured) {
  const models::ImageShape shape{.channels = 3, .height = 32, .width = 32};
  const models::Images images = testing::random_images(shape, 90);
  experiments::Run run = testing::run_of(model, 1);
  run.optimizer = optimizer;
  run.global_batch = 16;
  run.augmentation = "flip-crop";
  const Connections alone = unconnected();
  Trainer trainer(resolve(run), images_of(shape), alone);
  Outcome outcome;
  if (captured) trainer.capture_steps(fake_graphs(outcome.counts));
  const ImageDataset data = testing::tensors_of(images, at::kFloat, trainer.network().channels_last);
  const Sampler sampler(90, 16, 0, 1);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    if (epoch == 3) trainer.set_learning_rate(optimizer.learning_rate / 2);
    trainer.train_epoch(data, epoch, sampler, [](std::int64_t, const MetricSums&) {});
    const MetricSums sums = trainer.take_metrics();
    outcome.losses.push_back(sums.loss());
    outcome.weights.push_back(sums.weight());
    outcome.steps += trainer.take_times().steps;
  }
  CHECK(trainer.steps_done() == 18);
  outcome.parameters = testing::values_of(trainer);
  return outcome;
}

TEST_CASE("training with replayed steps equals training without, including smaller last batches") {
  experiments::Optimizer sgd, adam;
  sgd.learning_rate = 0.01;
  adam.kind = "adam";
  adam.learning_rate = 0.001;
  adam.momentum = 0;
  adam.clip_norm = 1e3;
  struct Case {
    const char* model;
    const experiments::Optimizer& optimizer;
  };
  for (const Case& each : {Case{"mlp", sgd}, Case{"mlp", adam}, Case{"cnn", sgd}}) {
    const auto& [model, optimizer] = each;
    CAPTURE(each.model);
    CAPTURE(each.optimizer.kind);
    const Outcome plain = train(model, optimizer, false), replayed = train(model, optimizer, true);
    CHECK(plain.counts.captured == 0);
    // The first three of 15 full batches are warm-up. The smaller last batches are warm only after three
    // epochs.
    CHECK(replayed.counts.replayed == 12);
    // Each epoch needs a new capture, for its learning rate and augmentation.
    CHECK(replayed.counts.captured == 3);
    REQUIRE(plain.parameters.size() == replayed.parameters.size());
    for (std::size_t i = 0; i < plain.parameters.size(); ++i)
      CHECK(at::equal(plain.parameters[i], replayed.parameters[i]));
    CHECK(plain.losses == replayed.losses);
    CHECK(plain.weights == std::vector<std::int64_t>{90, 90, 90});
    CHECK(replayed.weights == plain.weights);
    CHECK(replayed.steps == 18);
  }
}

// Dropout as in nbow: the device has the step number, while the host has that of the capture.
TEST_CASE("a replayed step applies the dropout of its own step number") {
  models::InputShape texts;
  texts.vocabulary = 50;
  texts.classes = 2;
  const auto graph =
      models::find_model("nbow").graph({{"dropout", 0.5}, {"embedding", std::int64_t{8}}}, texts);
  const networks::Layer dropout = networks::make_layer(graph.nodes.at(1), {});
  const at::Tensor x = at::ones({4, 8});
  networks::ForwardContext context;
  context.samples = at::arange(4);
  context.step = 5;
  const at::Tensor of_step = dropout.forward({x}, context).front();
  context.step = -1;
  CHECK(!at::equal(dropout.forward({x}, context).front(), of_step));
  context.step_on_device = at::full({}, 5, at::kLong);
  CHECK(at::equal(dropout.forward({x}, context).front(), of_step));
}

void nothing(const at::Tensor&, const std::shared_ptr<PartMarks>&) {}

TEST_CASE("if a capture fails, steps continue without replay, and the reason is kept") {
  int asked = 0;
  const auto alone = single_communicator();
  CudaGraphCache steps(
      [&] {
        ++asked;
        return std::make_unique<testing::BrokenGraph>();
      },
      at::kCPU, *alone);
  const at::Tensor indices = at::arange(4);
  for (int step = 0; step < 10; ++step) CHECK(!steps.replay({{4}, indices, 4, step}, nothing));
  CHECK(asked == 1);
  CHECK(steps.failure() == "operation not permitted");
}

TEST_CASE("a replayed step uses its own samples, step number and loss divisor") {
  Counts counts;
  const auto alone = single_communicator();
  CudaGraphCache steps(fake_graphs(counts), at::kCPU, *alone);
  std::vector<std::int64_t> seen;
  std::vector<double> factors;
  for (std::int64_t step = 0; step < 6; ++step) {
    const at::Tensor indices = at::full({2}, 10 * step, at::kLong);
    steps.replay({{2}, indices, std::int64_t{1} << step, step}, [&](const at::Tensor& own, const auto&) {
      seen.push_back(own[1].item<std::int64_t>() + steps.step_number().item<std::int64_t>());
      factors.push_back(steps.loss_factor().item<double>());
    });
  }
  CHECK(seen == std::vector<std::int64_t>{33, 44, 55});
  CHECK(factors == std::vector<double>{0.125, 0.0625, 0.03125});
  CHECK(counts.captured == 1);
}

TEST_CASE("each shape has its own graph, and the number of graphs is limited") {
  Counts counts;
  const auto alone = single_communicator();
  CudaGraphCache steps(fake_graphs(counts), at::kCPU, *alone);
  const auto make = [&](std::int64_t length) {
    return steps.replay({{2, length}, at::arange(2), 2, 0}, nothing);
  };
  const auto most = static_cast<std::int64_t>(CudaGraphCache::most_graphs);
  for (int time = 0; time < CudaGraphCache::eager_steps; ++time)
    for (std::int64_t length = 1; length <= most + 1; ++length) CHECK(!make(length));
  for (std::int64_t length = 1; length <= most; ++length) CHECK(make(length));
  CHECK(counts.captured == most);
  CHECK(!make(most + 1));  // never captured
  steps.clear();
  CHECK(make(most + 1));
  CHECK(make(1));
  CHECK(counts.captured == most + 2);
}

}  // namespace trainyard::runner::cuda_graph_cache_test
