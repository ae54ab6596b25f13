// Tests that need a GPU. Training there must equal training on the CPU, with and without replayed steps.
// Data is on the GPU or copied there. Without a GPU these tests do nothing.
#include "runner/device/gpu.h"

#include <cmath>
#include <string>
#include <vector>

#include "runner/device/device.h"
#include "runner/training/rank_records.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::gpu_test {

bool there_is_a_gpu() {
  const bool found = !gpus().empty();
  if (!found) MESSAGE("only on a GPU, and there is none here");
  return found;
}

struct How {
  const char* device = "cuda:0";
  bool replays = true;
  bool resident = true;
  at::ScalarType dtype = at::kDouble;
};

struct Trained {
  std::vector<double> losses;  // per epoch
  std::vector<at::Tensor> parameters;
  StepTimes times;       // of the first epoch, whose steps are not replayed
  StepTimes last_times;  // of the last epoch, whose steps are mostly replayed
  std::string why_not_replayed;
};

// Trains six epochs with 3 full batches and a smaller one. Some steps of each shape are replayed.
Trained train(const std::string& name, const How& how) {
  const testing::ParityModel model = testing::parity_model(name);
  experiments::Run run = testing::parity_run(model, {});
  run.global_batch = 12;
  const at::Device device = device_named(how.device);
  set_device(device);
  const Connections alone = unconnected(device);
  Trainer trainer(resolve(run), model.input, alone, how.dtype);
  if (!how.replays) trainer.capture_steps({});
  const auto data = testing::data_of(model, 40, how.dtype, trainer.network().channels_last);
  if (device.is_cuda()) data->serve(device, how.resident);
  const Sampler sampler(40, 12, 0, 1);
  Trained trained;
  for (std::int64_t epoch = 1; epoch <= 6; ++epoch) {
    trainer.train_epoch(*data, epoch, sampler, [](std::int64_t, const MetricSums&) {});
    synchronize(device);
    trained.losses.push_back(trainer.take_metrics().loss());
    const StepTimes times = trainer.take_times();
    if (epoch == 1) trained.times = times;
    trained.last_times = times;
  }
  for (const at::Tensor& value : testing::values_of(trainer)) trained.parameters.push_back(value.cpu());
  trained.why_not_replayed = trainer.why_not_captured();
  return trained;
}

void check_equal(const Trained& one, const Trained& other, double tolerance) {
  REQUIRE(one.losses.size() == other.losses.size());
  for (std::size_t i = 0; i < one.losses.size(); ++i)
    CHECK(std::abs(one.losses[i] - other.losses[i]) <= tolerance * std::abs(one.losses[i]));
  REQUIRE(one.parameters.size() == other.parameters.size());
  for (std::size_t i = 0; i < one.parameters.size(); ++i)
    CHECK(testing::euclidean_norm(one.parameters[i] - other.parameters[i]) <=
          tolerance * testing::euclidean_norm(one.parameters[i]));
}

TEST_CASE("on a GPU: each model trains as on the CPU, in float64 and with replayed steps if possible") {
  if (!there_is_a_gpu()) return;
  for (const char* model : {"mlp", "cnn", "vgg11", "nbow", "conv-autoencoder", "seq2seq"}) {
    CAPTURE(model);
    const Trained on_cpu = train(model, {.device = "cpu"});
    const Trained computed = train(model, {.replays = false});
    const Trained replayed = train(model, {});
    check_equal(on_cpu, computed, 1e-8);
    check_equal(computed, replayed, 1e-9);
    CAPTURE(replayed.why_not_replayed);
    CHECK(replayed.why_not_replayed.empty());
  }
}

TEST_CASE("on a GPU: data that does not fit is copied during the steps, and trains the same") {
  if (!there_is_a_gpu()) return;
  for (const char* model : {"mlp", "cnn"})
    check_equal(train(model, {.replays = false}), train(model, {.resident = false}), 1e-9);
}

TEST_CASE("on a GPU: the phases of a step take device time, and the memory has a peak") {
  if (!there_is_a_gpu()) return;
  set_device(device_named("cuda:0"));
  reset_peak_device_bytes(device_named("cuda:0"));
  const Trained trained = train("cnn", {.replays = false, .dtype = at::kFloat});
  CHECK(trained.times.steps == 4);
  CHECK(trained.times.passed.forward > 0);
  CHECK(trained.times.passed.backward > 0);
  CHECK(trained.times.passed.optimizer > 0);
  CHECK(device_memory(device_named("cuda:0")).peak_bytes > 0);
  CHECK(device_memory(device_named("cuda:0")).all_bytes > (std::int64_t{1} << 30));
}

TEST_CASE("on a GPU: metric sums are available after their copy to the host") {
  if (!there_is_a_gpu()) return;
  const at::Device device = device_named("cuda:0");
  set_device(device);
  MetricSums sums(find_task("classification"), device);
  AsyncMetrics seen(device, gpu_marks());
  const auto on_gpu = at::TensorOptions(device);
  sums.add(at::full({}, 2.5, on_gpu), {at::eye(4, on_gpu)}, at::arange(4, on_gpu.dtype(at::kLong)), 4);
  seen.poll(sums);
  synchronize(device);
  const auto arrived = seen.poll(sums);
  REQUIRE(arrived);
  CHECK(arrived->loss == 2.5);
  CHECK(arrived->correct == 4);
  CHECK(arrived->weight == 4);
}

TEST_CASE("on a GPU: the phases of replayed steps take device time") {
  if (!there_is_a_gpu()) return;
  const Trained trained = train("cnn", {.dtype = at::kFloat});
  CHECK(trained.why_not_replayed == "");
  const TimeParts& parts = trained.last_times.passed;
  CHECK(parts.forward > 0);
  CHECK(parts.backward > 0);
  CHECK(parts.optimizer > 0);
}

TEST_CASE("on a GPU: the error for too large a tensor has its size") {
  if (!there_is_a_gpu()) return;
  set_device(device_named("cuda:0"));
  std::string said;
  try {
    at::empty({std::int64_t{1} << 50}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  } catch (const c10::Error& error) {
    said = error.what_without_backtrace();
  }
  CAPTURE(said);
  CHECK(bytes_refused(said).value_or(0) >= std::int64_t{1} << 50);
}

}  // namespace trainyard::runner::gpu_test
