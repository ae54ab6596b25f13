// The mesh beyond the parity table: evaluation, gradient accumulation, clipping, and errors.
#include "runner/trainer/executor.h"

#include <mutex>
#include <set>

#include "base/error.h"
#include "runner/trainer/mesh.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/in_order.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::executor_test {

using namespace testing;

constexpr models::ImageShape small{.channels = 2, .height = 9, .width = 8};

// 121 samples in batches of 30. The last batch of an epoch has one sample, so only the first replica has one,
// and all micro-batches but one are empty.
constexpr std::int64_t samples = 121;
constexpr std::int64_t global_batch = 30;

struct Shape {
  std::int64_t replicas, stages;
  const char* schedule;
  std::int64_t micro_batches;
};

const std::vector<Shape> shapes{{1, 1, "", 1},      {2, 1, "", 1},     {4, 1, "", 1},     {1, 2, "", 1},
                                {1, 3, "gpipe", 4}, {1, 4, "1f1b", 4}, {2, 2, "1f1b", 3}, {2, 3, "gpipe", 2}};

experiments::Run small_run(const Shape& shape) {
  experiments::Run run = run_of("cnn", 1);  // 9 layers
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{11};
  run.hyperparameters["channels"] = std::vector<std::int64_t>{3, 5};
  run.strategy.kind = run.strategy.name = "mp-ddp";
  run.strategy.replicas = shape.replicas;
  run.strategy.stages = shape.stages;
  run.strategy.schedule = shape.schedule;
  run.strategy.micro_batches = shape.micro_batches;
  for (std::int64_t stage = 1; stage < shape.stages; ++stage) run.strategy.boundaries.push_back(2 * stage);
  run.global_batch = global_batch;
  run.optimizer.weight_decay = 0.001;
  run.seed = 7;
  return run;
}

struct Result {
  std::vector<double> losses;  // per step, mean over the global batch
  std::vector<at::Tensor> parameters;
  std::int64_t weight = 0, correct = 0;  // of the evaluation afterwards
  double evaluated_loss = 0;
};

// Trains two epochs and evaluates, in float64. `prepare` may change the connections of a rank.
Result train_and_evaluate(const experiments::Run& run,
                          const std::function<void(Connections&)>& prepare = {}) {
  const Mesh mesh{static_cast<int>(run.strategy.replicas), static_cast<int>(run.strategy.stages)};
  const models::Images images = random_images(small, samples);
  Result result;
  result.losses.resize(10);
  std::vector<std::vector<at::Tensor>> parameters(static_cast<std::size_t>(mesh.stages));
  std::mutex mutex;
  run_mesh(mesh, [&](Connections& ranks) {
    if (prepare) prepare(ranks);
    Trainer trainer(resolve(run), {small, 10}, ranks, at::kDouble);
    const ImageDataset data = tensors_of(images, at::kDouble, trainer.network().channels_last);
    const Sampler sampler(samples, global_batch, ranks.position.replica, mesh.replicas);
    for (std::size_t step = 0; step < result.losses.size(); ++step) {
      const auto k = static_cast<std::int64_t>(step) % sampler.steps();
      const LocalBatch local =
          sampler.local_batch(data, epoch_order(samples, run.seed, static_cast<int>(step) / 5), k);
      trainer.step(data, local.indices, local.divisor);
      const std::lock_guard lock(mutex);
      result.losses[step] +=
          trainer.take_metrics().loss() / static_cast<double>(sampler.global_batch(k).size());
    }
    const MetricSums sums = trainer.evaluate(data, sampler, [](std::int64_t, const MetricSums&) {});
    const std::lock_guard lock(mutex);
    result.weight += sums.weight();
    result.correct += sums.correct().value();
    result.evaluated_loss += sums.loss();
    if (ranks.position.replica == 0) {
      parameters[static_cast<std::size_t>(ranks.position.stage)] = values_of(trainer);
    }
  });
  for (const auto& of_stage : parameters) {
    result.parameters.insert(result.parameters.end(), of_stage.begin(), of_stage.end());
  }
  return result;
}

void check_equal(const Result& many, const Result& one) {
  for (std::size_t step = 0; step < one.losses.size(); ++step) {
    CAPTURE(step);
    CHECK(many.losses[step] == doctest::Approx(one.losses[step]).epsilon(1e-11).scale(0));
  }
  REQUIRE(many.parameters.size() == one.parameters.size());
  for (std::size_t i = 0; i < one.parameters.size(); ++i) {
    CAPTURE(i);
    CHECK(largest(many.parameters[i] - one.parameters[i]) <= 1e-9 * largest(one.parameters[i]));
  }
  CHECK(many.weight == samples);
  CHECK(many.correct == one.correct);
  CHECK(many.evaluated_loss == doctest::Approx(one.evaluated_loss).epsilon(1e-11));
}

TEST_CASE("every mesh and schedule trains and evaluates as one rank does, even with empty micro-batches") {
  for (const char* optimizer : {"sgd", "adam"}) {
    Result one;
    for (const Shape& shape : shapes) {
      CAPTURE(optimizer);
      CAPTURE(shape.replicas);
      CAPTURE(shape.stages);
      CAPTURE(shape.schedule);
      experiments::Run run = small_run(shape);
      run.optimizer.kind = optimizer;
      run.optimizer.learning_rate = run.optimizer.kind == "adam" ? 0.002 : 0.05;
      run.optimizer.momentum = run.optimizer.kind == "adam" ? 0 : 0.9;
      const Result result = train_and_evaluate(run);
      if (one.losses.empty()) one = result;
      CHECK(result.losses.front() != result.losses.back());
      check_equal(result, one);
    }
  }
}

TEST_CASE("if messages are matched in order, as in NCCL, every schedule trains as one rank does") {
  const Result one = train_and_evaluate(small_run({1, 1, "", 1}));
  for (const Shape& shape : shapes) {
    if (shape.stages == 1) continue;
    CAPTURE(shape.stages);
    CAPTURE(shape.schedule);
    std::vector<int> described(static_cast<std::size_t>(shape.replicas * shape.stages));
    const Result result = train_and_evaluate(small_run(shape), [&](Connections& ranks) {
      const auto rank = ranks.position.replica * shape.stages + ranks.position.stage;
      ranks.stages = in_order(std::move(ranks.stages), described[static_cast<std::size_t>(rank)]);
    });
    check_equal(result, one);
    // The last stage sends only gradients, which need no description. Other stages describe activations once
    // for each number of samples, in training and in evaluation.
    std::set<std::int64_t> sizes;
    for (const std::int64_t batch : {global_batch, samples % global_batch}) {
      const Part part = part_of({0, batch}, 0, static_cast<int>(shape.replicas));
      for (int m = 0; m < shape.micro_batches; ++m)
        sizes.insert(part_of({0, part.size()}, m, static_cast<int>(shape.micro_batches)).size());
    }
    sizes.erase(0);
    for (std::int64_t stage = 0; stage < shape.stages; ++stage)
      CHECK(described[static_cast<std::size_t>(stage)] ==
            (stage + 1 < shape.stages ? 2 * static_cast<int>(sizes.size()) : 0));
  }
}

TEST_CASE("a message without a description is an error if its layout is unknown") {
  run_mesh({1, 2}, [](const Connections& ranks) {
    if (ranks.position.stage == 0) return;
    IncomingMessage message(*ranks.stages, 0, 0, /*described=*/false);
    CHECK_THROWS_WITH_AS(message.take(), "a message has neither a header nor a known layout", InternalError);
  });
}

TEST_CASE("gradient accumulation gives the gradients of the whole step") {
  const Result one = train_and_evaluate(small_run({1, 1, "", 1}));
  for (const Shape& shape :
       {Shape{1, 1, "", 1}, Shape{2, 1, "", 1}, Shape{1, 2, "", 1}, Shape{2, 2, "1f1b", 2}}) {
    experiments::Run run = small_run(shape);
    run.gradient_accumulation = 3;
    check_equal(train_and_evaluate(run), one);
  }
}

TEST_CASE("a stage sends lists of tensors of any kind, and their sizes may change with each message") {
  run_mesh({1, 2}, [](const Connections& ranks) {
    Communicator& stages = *ranks.stages;
    OutgoingMessages outgoing;
    for (int tag = 0; tag < 3; ++tag) {
      const networks::Activations sent{at::arange(6 * (tag + 1), at::kDouble)
                                           .view({2, 3, tag + 1, 1})
                                           .contiguous(at::MemoryFormat::ChannelsLast),
                                       at::arange(tag, at::kLong), at::full({}, 2.5, at::kFloat),
                                       at::ones({tag, 4}, at::kBool)};
      sent[2].set_requires_grad(true);
      if (ranks.position.stage == 0) {
        outgoing.send(stages, 1, tag, sent);
        continue;
      }
      IncomingMessage message(stages, 0, tag);
      if (tag == 1) message.post_tensors(layout_of(sent));  // as for known sizes
      const auto content = message.take();
      bool equal = content.tensors.size() == sent.size();
      for (std::size_t i = 0; equal && i < sent.size(); ++i) {
        equal = at::equal(content.tensors[i], sent[i]) && content.tensors[i].strides() == sent[i].strides() &&
                content.tensors[i].requires_grad() == sent[i].requires_grad();
      }
      if (!equal) throw std::runtime_error("message " + std::to_string(tag) + " arrived otherwise");
    }
    outgoing.finish();
  });
}

TEST_CASE("tensors that differ from the expected ones are an error") {
  CHECK_THROWS_WITH_AS(run_mesh({1, 2},
                                [](const Connections& ranks) {
                                  OutgoingMessages outgoing;
                                  if (ranks.position.stage == 0) {
                                    outgoing.send(*ranks.stages, 1, 0, {});
                                    outgoing.finish();
                                    return;
                                  }
                                  IncomingMessage message(*ranks.stages, 0, 0);
                                  message.post_tensors({{.dtype = at::kFloat, .sizes = {0}}});
                                  message.take();
                                }),
                       "a stage has sent other tensors than its neighbour expects", InternalError);
}

TEST_CASE("stages are the layers between boundaries") {
  experiments::Strategy strategy{.name = "three", .kind = "mp", .stages = 3, .boundaries = {2, 5}};
  CHECK(layers_of_stage(strategy, 0, 7) == models::NodeRange{0, 2});
  CHECK(layers_of_stage(strategy, 1, 7) == models::NodeRange{2, 5});
  CHECK(layers_of_stage(strategy, 2, 7) == models::NodeRange{5, 7});
  CHECK_THROWS_WITH_AS(layers_of_stage(strategy, 0, 2),
                       "strategy three has 3 stages, but the model has 2 layers; use at most 2 stages",
                       UserError);
  for (const std::vector<std::int64_t>& wrong :
       {std::vector<std::int64_t>{}, {2}, {5, 2}, {0, 5}, {2, 7}, {2, 2}, {1, 2, 3}}) {
    strategy.boundaries = wrong;
    CHECK_THROWS_WITH_AS(
        layers_of_stage(strategy, 0, 7),
        "the boundaries of strategy three do not divide 7 layers into 3 stages; list the first layer "
        "of each stage except the first, in ascending order",
        UserError);
  }
}

TEST_CASE("a world size that does not fit the mesh, or a mesh that does not fit the strategy, is an error") {
  experiments::Strategy strategy{.name = "grid", .kind = "mp-ddp", .replicas = 2, .stages = 3};
  CHECK(mesh_of(strategy, 6).world_size() == 6);
  CHECK(mesh_of(strategy, 6).position(4) == Position{1, 1});
  CHECK_THROWS_WITH_AS(
      mesh_of(strategy, 5),
      "strategy grid has 2 replicas × 3 stages, but WORLD_SIZE is 5; start one process per rank", UserError);
  strategy.kind = "pipeline";
  CHECK_THROWS_WITH_AS(
      mesh_of(strategy, 6),
      "strategy grid of kind pipeline cannot have 2 replicas × 3 stages; use mp-ddp or tensor", UserError);
  strategy.kind = "pipelined";
  CHECK_THROWS_WITH_AS(mesh_of(strategy, 6), doctest::Contains("there is no strategy \"pipelined\""),
                       UserError);
}

}  // namespace trainyard::runner::executor_test
