// ZeRO over messages trains what ddp trains over shared memory, bit by bit, with fewer bytes.
#include "runner/optimizer/zero.h"

#include <map>
#include <mutex>

#include <ATen/ATen.h>

#include "runner/communicator/process_groups.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/replicas.h"
#include "tests/runner/support/small_runs.h"

namespace trainyard::runner::zero_test {

using namespace testing;

experiments::Run adam_run(const std::string& sharding, std::int64_t replicas) {
  experiments::Run run = run_of("mlp", replicas);
  run.optimizer.kind = "adam";
  run.optimizer.momentum = 0;
  run.optimizer.learning_rate = 0.003;
  if (sharding.empty()) return run;
  run.strategy.name = run.strategy.kind = "zero";
  run.strategy.sharding = sharding;
  return run;
}

struct Trained {
  std::vector<at::Tensor> parameters, gradients;  // of replica 0
  std::map<int, HeldBytes> held;                  // by replica
};

// Batches of `batch` samples, then one of a single sample, which leaves the other replicas without any.
Trained train(const experiments::Run& run, const std::string& communicator, std::int64_t batch = 13,
              const std::function<void(Connections&)>& prepare = {}) {
  const models::InputShape input{.image = {1, 28, 28}, .classes = 10};
  const at::ScalarType dtype = run.precision == "float32" ? at::kDouble : at::kFloat;
  Trained trained;
  std::mutex mutex;
  run_mesh(
      {static_cast<int>(run.strategy.replicas), 1},
      [&](Connections& ranks) {
        if (prepare) prepare(ranks);
        Trainer trainer(resolve(run), input, ranks, dtype);
        const ImageDataset data = tensors_of(random_images(input.image, 3 * batch + 1), dtype, false);
        const Sampler sampler(data.size(), batch, ranks.position.replica, ranks.mesh.replicas);
        for (int epoch = 1; epoch <= 2; ++epoch)
          trainer.train_epoch(data, epoch, sampler, [](std::int64_t, const MetricSums&) {});
        const auto gradients = trainer.gradients();
        const std::lock_guard lock(mutex);
        trained.held[ranks.position.replica] = trainer.held().value();
        if (ranks.position.replica != 0) return;
        trained.parameters = values_of(trainer);
        for (const at::Tensor& gradient : gradients) trained.gradients.push_back(gradient.clone());
      },
      communicator);
  return trained;
}

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  bool same = a.size() == b.size() && !a.empty();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = at::equal(a[i], b[i]);
  return same;
}

double difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, largest(a[i] - b[i]) / largest(b[i]));
  return most;
}

TEST_CASE("zero over messages has the bits of ddp over shared memory") {
  for (const std::int64_t replicas : {2, 3, 5}) {
    const Trained ddp = train(adam_run("", replicas), "auto");
    for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
      CAPTURE(replicas);
      CAPTURE(sharding);
      const Trained zero = train(adam_run(sharding, replicas), "gloo");
      CHECK(same_bits(zero.parameters, ddp.parameters));
      CHECK(same_bits(zero.gradients, ddp.gradients));
      CHECK(same_bits(train(adam_run(sharding, replicas), "auto").parameters, ddp.parameters));
    }
  }
}

TEST_CASE("zero adds up the turns of gradient accumulation, also on replicas with fewer of them") {
  const auto clipped = [](experiments::Run run) {
    run.optimizer.clip_norm = 0.5;  // of all slices together
    return run;
  };
  const Trained single = train(clipped(adam_run("", 1)), "auto"),
                less = train(clipped(adam_run("", 1)), "auto", 4);
  CHECK(difference(single.parameters, train(adam_run("", 1), "auto").parameters) > 1e-3);
  for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
    CAPTURE(sharding);
    experiments::Run run = clipped(adam_run(sharding, 3));
    run.gradient_accumulation = 3;
    CHECK(difference(train(run, "gloo").parameters, single.parameters) < 1e-9);
    CHECK(difference(train(run, "gloo", 4).parameters, less.parameters) <
          1e-9);  // parts of 2, 1 and 1 samples
  }
}

TEST_CASE("zero scales the loss and rounds as ddp does") {
  for (const char* precision : {"bfloat16", "float16"}) {
    CAPTURE(precision);
    const auto in = [&](experiments::Run run) {
      run.precision = precision;
      return run;
    };
    const Trained ddp = train(in(adam_run("", 3)), "auto");
    CHECK(same_bits(train(in(adam_run("parameters", 3)), "gloo").parameters, ddp.parameters));
  }
}

// A transport like NCCL: replicas are not neighbours of a chain, so they cannot send messages.
class WithoutMessages final : public Communicator {
 public:
  explicit WithoutMessages(std::unique_ptr<Communicator> through) : through_(std::move(through)) {}
  int rank() const override { return through_->rank(); }
  int size() const override { return through_->size(); }
  const char* transport() const override { return "collectives"; }
  Capabilities capabilities() const override { return {.ordered_messages = true}; }
  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override { return through_->all_reduce(tensor); }
  std::unique_ptr<Work> send(const at::Tensor&, int, int) override { throw InternalError("not a neighbour"); }
  std::unique_ptr<Work> receive(const at::Tensor&, int, int) override {
    throw InternalError("not a neighbour");
  }
  void broadcast(const at::Tensor& tensor, int root) override { through_->broadcast(tensor, root); }
  void barrier() override { through_->barrier(); }

 private:
  std::unique_ptr<Communicator> through_;
};

TEST_CASE("zero works with collectives alone, as of NCCL") {
  const Trained ddp = train(adam_run("", 3), "auto");
  for (const char* sharding : {"optimizer", "parameters"}) {
    const Trained zero = train(adam_run(sharding, 3), "gloo", 13, [](Connections& ranks) {
      ranks.replicas = std::make_unique<WithoutMessages>(std::move(ranks.replicas));
    });
    CHECK(difference(zero.parameters, ddp.parameters) < 1e-9);
    CHECK(difference(zero.gradients, ddp.gradients) < 1e-9);
  }
}

// MLP 784-128-64-10 in float64: the numbers of the formulas are twice those of float32.
TEST_CASE("a replica of zero holds the bytes of the formulas") {
  constexpr double parameters = 8 * 109'386, largest_unit = 8 * 785 * 128;
  constexpr double half = parameters / 2, of_unit = half + largest_unit / 2;
  const auto is = [](std::int64_t bytes, double expected) {
    CAPTURE(bytes);
    CAPTURE(expected);
    CHECK(std::abs(static_cast<double>(bytes) - expected) <= 0.05 * expected);
  };
  const auto held = [](const char* sharding, std::int64_t turns = 1) {
    experiments::Run run = adam_run(sharding, 2);
    run.hyperparameters["hidden"] = std::vector<std::int64_t>{128, 64};
    run.gradient_accumulation = turns;
    return train(run, "gloo").held;
  };
  for (const auto& [replica, bytes] : held("")) {
    is(bytes.parameters, parameters);
    is(bytes.state, 2 * parameters);
  }
  for (const auto& [replica, bytes] : held("optimizer", 2)) {
    is(bytes.parameters, parameters);
    is(bytes.gradients, parameters);
    is(bytes.state, parameters);
  }
  for (const auto& [replica, bytes] : held("gradients", 2)) {
    is(bytes.parameters, parameters);
    is(bytes.gradients, half + largest_unit);
    is(bytes.state, parameters);
  }
  for (const char* sharding : {"gradients", "parameters"})
    for (const auto& [replica, bytes] : held(sharding)) {
      is(bytes.gradients, of_unit);
      is(bytes.messages, largest_unit / 2);
      is(bytes.parameters, sharding == std::string("parameters") ? of_unit : parameters);
      is(bytes.state, parameters);
    }
}

}  // namespace trainyard::runner::zero_test
