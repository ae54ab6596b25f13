// Training on a pretended device instead of the CPU. All tensors of a step are on the device, no step reads a
// value from it, and the results are those of the CPU.
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/runner/device/pretend_device.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/fake_graph.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/replicas.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;

constexpr std::int64_t samples = 40, batch = 12;  // three full batches and a smaller one
// Without seq2seq: off the CPU, LibTorch computes LSTM layers with kernels that the CPU does not have.
constexpr std::array models{"mlp", "cnn", "vgg11", "nbow", "conv-autoencoder", "mobilenet-v2", "gpt"};

struct How {
  experiments::Strategy strategy = {};
  std::string optimizer = "sgd";
  double clip_norm = 0;
  std::string augmentation = "none";
  bool replays = false;
  bool questions = true;  // whether a step may read values from the device
};

struct Trained {
  std::vector<double> losses;  // per epoch: training, then validation
  std::vector<at::Tensor> parameters;
};

std::unique_ptr<Dataset> data_for(const testing::ParityModel& model, const Trainer& trainer,
                                  at::Device device) {
  auto data = testing::data_of(model, samples, at::kDouble, trainer.network().channels_last);
  if (!device.is_cpu()) data->serve(device, /*resident=*/true);
  return data;
}

// Trains one epoch. Fake graphs replay the host's work, too, so they need the same data object in all epochs.
void train_epoch(Trainer& trainer, const Dataset& data, std::int64_t epoch, const Sampler& sampler,
                 const How& how) {
  if (!how.replays) return trainer.train_epoch(data, epoch, sampler, [](std::int64_t, const MetricSums&) {});
  const at::Tensor order = epoch_order(data, batch, /*seed=*/7, epoch);
  for (std::int64_t k = 0; k < sampler.steps(); ++k) {
    const LocalBatch local = sampler.local_batch(data, order, k);
    trainer.step(data, local.indices, local.divisor);
  }
}

Trained train_rank(const testing::ParityModel& model, const experiments::Run& run, const Connections& ranks,
                   const How& how) {
  Trainer trainer(resolve(run), model.input, ranks, at::kDouble);
  testing::Counts counts;
  if (how.replays) trainer.capture_steps(testing::fake_graphs(counts));
  const auto data = data_for(model, trainer, ranks.device);
  const Sampler sampler(samples, batch, ranks.position.replica, ranks.mesh.replicas);
  Trained trained;
  for (std::int64_t epoch = 1; epoch <= 5; ++epoch) {
    {
      std::optional<testing::NoQuestions> silent;
      if (!how.questions) silent.emplace();
      train_epoch(trainer, *data, epoch, sampler, how);
    }
    trained.losses.push_back(trainer.take_metrics().loss());
    const MetricSums validation = trainer.evaluate(*data, sampler, [](std::int64_t, const MetricSums&) {});
    trained.losses.push_back(validation.loss());
  }
  CHECK((counts.replayed > 0) == how.replays);
  for (const auto& parameter : trainer.network().parameters()) {
    if (!ranks.device.is_cpu()) CHECK(parameter.value.device() == ranks.device);
    trained.parameters.push_back(parameter.value.detach().to(at::kCPU));
  }
  return trained;
}

// The results by rank.
std::vector<Trained> train(const std::string& name, at::Device device, const How& how) {
  const testing::ParityModel model = testing::parity_model(name);
  experiments::Run run = testing::parity_run(model, how.strategy);
  run.global_batch = batch;
  run.optimizer.kind = how.optimizer;
  run.optimizer.clip_norm = how.clip_norm;
  run.augmentation = how.augmentation;
  const auto replicas = static_cast<int>(how.strategy.replicas),
             stages = static_cast<int>(how.strategy.stages);
  std::vector<Trained> trained(static_cast<std::size_t>(replicas * stages));
  if (trained.size() == 1) {
    const Connections alone = unconnected(device);
    return {train_rank(model, run, alone, how)};
  }
  // Gloo, because autograd has one thread per device. A rank's reduction must not wait there for another
  // rank.
  const DeviceAssignment assignment{device, "a GPU", device.is_cpu() ? "" : "one that all share"};
  testing::run_mesh(
      {replicas, stages},
      [&](Connections& ranks) {
        const int rank = ranks.position.replica * stages + ranks.position.stage;
        trained[static_cast<std::size_t>(rank)] = train_rank(model, run, ranks, how);
      },
      "gloo", [&](int) { return assignment; });
  return trained;
}

void check_same(const std::string& model, const How& how, double tolerance = 1e-9) {
  CAPTURE(model);
  constexpr double rounding = 1e-15;  // biases before a batch normalisation have no other gradient
  const auto on_cpu = train(model, at::kCPU, {how.strategy, how.optimizer, how.clip_norm, how.augmentation});
  const auto beside = train(model, testing::pretend_device(), how);
  REQUIRE(on_cpu.size() == beside.size());
  for (std::size_t rank = 0; rank < on_cpu.size(); ++rank) {
    REQUIRE(on_cpu[rank].losses.size() == beside[rank].losses.size());
    REQUIRE(on_cpu[rank].parameters.size() == beside[rank].parameters.size());
    for (std::size_t i = 0; i < on_cpu[rank].losses.size(); ++i)
      CHECK(std::abs(on_cpu[rank].losses[i] - beside[rank].losses[i]) <=
            tolerance * std::abs(on_cpu[rank].losses[i]));
    for (std::size_t i = 0; i < on_cpu[rank].parameters.size(); ++i)
      CHECK(testing::euclidean_norm(on_cpu[rank].parameters[i] - beside[rank].parameters[i]) <=
            tolerance * testing::euclidean_norm(on_cpu[rank].parameters[i]) + rounding);
  }
}

TEST_CASE("the pretended device throws if an operation mixes devices or reads a value") {
  const at::Tensor there = at::ones({2}, testing::pretend_device()), here = at::ones({2});
  CHECK(there.to(at::kCPU).sum().item<double>() == 2);
  CHECK_THROWS_WITH(there.add(here), doctest::Contains("devices"));
  CHECK(there.add(here.to(there.device())).sum().item<double>() == 4);
  const testing::NoQuestions silent;
  CHECK_THROWS_WITH(there.sum().item(), doctest::Contains("asks a device for a value"));
}

TEST_CASE("off the CPU each model trains as on the CPU, and no step reads a value") {
  for (const std::string model : models) check_same(model, {.questions = false});
}

TEST_CASE("off the CPU replayed steps train as on the CPU, with indices and step number on the device") {
  for (const std::string model : models) check_same(model, {.replays = true, .questions = false});
}

TEST_CASE("off the CPU the optimizers, clipping and augmentation are those of the CPU") {
  for (const std::string optimizer : {"adam", "adamw"})
    check_same("cnn",
               {.optimizer = optimizer, .clip_norm = 0.5, .augmentation = "flip-crop", .questions = false});
}

TEST_CASE("off the CPU ranks of every mesh train as on the CPU, with copies in host memory") {
  const experiments::Strategy ddp{.name = "ddp", .kind = "ddp", .replicas = 2}, pipeline{.name = "mp-ddp",
                                                                                         .kind = "mp-ddp",
                                                                                         .replicas = 2,
                                                                                         .stages = 2,
                                                                                         .schedule = "1f1b",
                                                                                         .micro_batches = 2};
  for (const std::string model : models) {
    check_same(model, {.strategy = ddp});
    check_same(model, {.strategy = pipeline});
  }
}

TEST_CASE("off the CPU a loss scale is on the device, and skips the same steps as on the CPU") {
  const at::Device device = testing::pretend_device();
  for (const at::Device where : {at::Device(at::kCPU), device}) {
    const auto scale = dynamic_loss_scale(where);
    const auto on = at::TensorOptions(where);
    {
      const testing::NoQuestions silent;
      const at::Tensor infinite = at::full({3}, std::numeric_limits<float>::infinity(), on);
      scale->unscale({at::ones({2}, on), infinite}, [](const at::Tensor&) {});
      scale->update();
    }
    CHECK(scale->found_inf()->device() == where);
    const auto steps = scale->take_steps();
    CHECK(steps->loss_scale == 32768);
    CHECK(steps->skipped_steps == 1);
  }
}

}  // namespace
