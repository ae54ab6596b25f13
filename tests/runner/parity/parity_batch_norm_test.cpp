// Batch normalisation with replicas: running statistics are those of replica 0, and synchronised statistics
// are those of one batch.
#include <mutex>

#include "runner/parity/reference_trainer.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/parity_cases.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::parity_batch_norm_test {

using namespace testing;

// The last batch has 3 samples, so one of four replicas has none.
constexpr std::int64_t global_batch = 13;
constexpr std::int64_t samples = 2 * global_batch + 3;

struct Outcome {
  std::vector<double> losses;                           // per step, summed over the global batch
  double evaluated_loss = 0;                            // summed over all samples
  std::vector<at::Tensor> first_buffers, last_buffers;  // of the first and last replica, after training
};

std::vector<at::Tensor> buffers_of(const Trainer& trainer) {
  std::vector<at::Tensor> buffers;
  for (const auto& buffer : trainer.network().buffers()) buffers.push_back(buffer.value.clone());
  return buffers;
}

experiments::Run run_on(const ParityModel& model, int replicas, const std::string& batch_norm) {
  experiments::Run run =
      parity_run(model, {.name = "ddp", .kind = "ddp", .replicas = replicas, .boundaries = {}});
  run.batch_norm = batch_norm;
  return run;
}

// Trains two epochs, then evaluates the same samples, in float64.
Outcome train(int replicas, const std::string& batch_norm) {
  const ParityModel model = parity_model("vgg11");
  const experiments::Run run = run_on(model, replicas, batch_norm);
  Outcome outcome;
  outcome.losses.resize(6);
  std::mutex mutex;
  run_mesh({replicas, 1}, [&](const Connections& ranks) {
    Trainer trainer(resolve(run), model.input, ranks, at::kDouble);
    const auto data = data_of(model, samples, at::kDouble, trainer.network().channels_last);
    const Sampler sampler(samples, global_batch, ranks.position.replica, replicas);
    for (std::size_t step = 0; step < outcome.losses.size(); ++step) {
      const auto k = static_cast<std::int64_t>(step) % sampler.steps();
      const LocalBatch local = sampler.local_batch(*data, at::arange(samples), k);
      trainer.step(*data, local.indices, local.divisor);
      const std::lock_guard lock(mutex);
      outcome.losses[step] += trainer.take_metrics().loss();
    }
    const std::vector<at::Tensor> buffers = buffers_of(trainer);
    const MetricSums sums = trainer.evaluate(*data, sampler, [](std::int64_t, const MetricSums&) {});
    const std::lock_guard lock(mutex);
    outcome.evaluated_loss += sums.loss();
    if (ranks.position.replica == 0) outcome.first_buffers = buffers;
    if (ranks.position.replica == replicas - 1) outcome.last_buffers = buffers;
  });
  return outcome;
}

TEST_CASE(
    "batch normalisation: with synchronised statistics replicas train and evaluate as one replica does") {
  const Outcome one = train(1, "local");
  for (const int replicas : {2, 4}) {
    CAPTURE(replicas);
    const Outcome many = train(replicas, "sync");
    for (std::size_t step = 0; step < one.losses.size(); ++step) {
      CAPTURE(step);
      CHECK(many.losses[step] == doctest::Approx(one.losses[step]).epsilon(1e-9).scale(0));
    }
    CHECK(many.evaluated_loss == doctest::Approx(one.evaluated_loss).epsilon(1e-9).scale(0));
    for (std::size_t i = 0; i < one.first_buffers.size(); ++i) {
      CAPTURE(i);
      CHECK(at::allclose(many.last_buffers[i], one.first_buffers[i], 1e-9, 1e-12));
    }
  }
  CHECK(train(2, "local").losses.back() != doctest::Approx(one.losses.back()).epsilon(1e-6));
}

TEST_CASE("batch normalisation: all replicas evaluate with the running statistics of replica 0") {
  const ParityModel model = parity_model("vgg11");
  const Outcome two = train(2, "local");
  CHECK(!at::equal(two.first_buffers[0], two.last_buffers[0]));  // each replica had its own statistics

  ReferenceTrainer virtual_mesh(resolve(run_on(model, 2, "local")), model.input, 2, 1, at::kDouble);
  const auto data = data_of(model, samples, at::kDouble, virtual_mesh.network().channels_last);
  const Sampler whole(samples, global_batch, 0, 1);
  for (std::int64_t step = 0; step < 6; ++step) {
    const at::Tensor indices = whole.indices(at::arange(samples), step % whole.steps());
    virtual_mesh.step(*data, indices, data->weight(indices));
  }
  const Batch all = data->gather(at::arange(samples));
  networks::ForwardContext context;
  context.training = false;
  const at::Tensor outputs = virtual_mesh.network().forward(all.inputs, context).front();
  const double loss = find_task("classification").loss_sum(outputs, all.targets).item<double>();
  CHECK(two.evaluated_loss == doctest::Approx(loss).epsilon(1e-9).scale(0));
}

}  // namespace trainyard::runner::parity_batch_norm_test
