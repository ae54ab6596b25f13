// Replicas with replayed steps: all of them replay, or none.
#include <array>
#include <string>

#include "runner/trainer/cuda_graph_cache.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/fake_graph.h"
#include "tests/runner/support/passed_on.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::captured_replicas_test {

TEST_CASE("if a capture fails on one replica, no replica replays, even steps that were captured before") {
  constexpr int replicas = 3, broken = 1;
  for (const bool nccl : {false, true}) {
    std::array<testing::Counts, replicas> counts;
    std::array<int, replicas> replayed_of_second_shape{};
    std::array<std::string, replicas> failures;
    testing::run_ranks(replicas, [&](Communicator& ranks) {
      const auto rank = static_cast<std::size_t>(ranks.rank());
      CudaGraphCache steps(
          [&]() -> std::unique_ptr<CudaGraph> {
            if (ranks.rank() == broken && counts[rank].captured == 1)
              return std::make_unique<testing::BrokenGraph>(nccl);
            return std::make_unique<testing::FakeGraph>(counts[rank]);
          },
          at::kCPU, ranks);
      for (int step = 0; step < 5; ++step)
        steps.replay({{4}, at::arange(4), 4, step}, [](const auto&, const auto&) {});
      for (int step = 0; step < 5; ++step)
        replayed_of_second_shape[rank] +=
            steps.replay({{2}, at::arange(2), 2, step}, [](const auto&, const auto&) {});
      for (int step = 0; step < 5; ++step)
        steps.replay({{4}, at::arange(4), 4, step}, [](const auto&, const auto&) {});
      failures[rank] = steps.failure();
    });
    const std::string why =
        nccl ? "rank 1: all-reduce failed: unhandled cuda error" : "operation not permitted";
    for (std::size_t rank = 0; rank < replicas; ++rank) {
      CAPTURE(rank);
      CHECK(counts[rank].replayed == 2);  // of the first shape, before the second was tried
      CHECK(counts[rank].captured == (rank == broken ? 1 : 2));
      CHECK(replayed_of_second_shape[rank] == 0);
      CHECK(failures[rank] == (rank == broken ? why : "the capture failed on another rank"));
    }
  }
}

// A communicator like NCCL's during a capture: calls are not executed. Call number `fails` throws.
class CapturedCalls final : public testing::PassedOn {
 public:
  CapturedCalls(std::unique_ptr<Communicator> through, int fails)
      : PassedOn(std::move(through)), fails_(fails) {}
  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    if (!capturing) return PassedOn::all_reduce(tensor);
    if (calls++ == fails_) throw CommunicationError("all-reduce failed");
    return single_communicator()->all_reduce(tensor);
  }
  void renew() override { ++renewed; }

  bool capturing = false;
  int calls = 0;  // captured calls
  int renewed = 0;

 private:
  int fails_;
};

// A fake graph whose capture runs the step on the host, up to a failure.
// The results are undone, because a GPU does not compute during a capture.
class HostGraph final : public CudaGraph {
 public:
  HostGraph(Trainer& trainer, CapturedCalls& calls) : trainer_(trainer), calls_(calls) {}
  void capture(const std::function<void()>& work) override {
    std::vector<networks::NamedParameter> before = trainer_.state();
    for (auto& each : before) each.value = each.value.detach().clone();
    calls_.capturing = true;
    const auto undo = [&] {
      calls_.capturing = false;
      trainer_.restore(before, trainer_.steps_done());
    };
    try {
      work();
    } catch (...) {
      undo();
      throw;
    }
    undo();
    work_ = work;
  }
  void replay() override { work_(); }
  std::unique_ptr<TimeMark> mark() override { return nullptr; }

 private:
  Trainer& trainer_;
  CapturedCalls& calls_;
  std::function<void()> work_;
};

constexpr int never = -1;

struct Replicas {
  std::vector<at::Tensor> parameters;  // of replica 0
  std::array<std::string, 2> why_not;
  std::array<int, 2> calls{}, renewed{};
};

// Two replicas. Call number `fails` of the capture fails on replica 1.
Replicas train_replicas(bool captured, int fails) {
  const models::ImageShape shape{.channels = 1, .height = 28, .width = 28};
  const models::Images images = testing::random_images(shape, 170);
  experiments::Run run = testing::run_of("mlp", 2);
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{400, 100};  // two buckets of gradients
  run.optimizer.kind = "adam";
  run.optimizer.momentum = 0;
  run.global_batch = 16;
  Replicas outcome;
  testing::run_mesh({2, 1}, [&](Connections& ranks) {
    const int rank = ranks.replicas->rank();
    auto calls = std::make_unique<CapturedCalls>(std::move(ranks.replicas), rank == 1 ? fails : never);
    CapturedCalls& watched = *calls;
    ranks.replicas = std::move(calls);
    Trainer trainer(resolve(run), {.image = shape, .classes = 10}, ranks);
    if (captured) trainer.capture_steps([&] { return std::make_unique<HostGraph>(trainer, watched); });
    const ImageDataset data = testing::tensors_of(images, at::kFloat, trainer.network().channels_last);
    const Sampler sampler(170, 16, rank, 2);
    trainer.train_epoch(data, 1, sampler, [](std::int64_t, const MetricSums&) {});
    const auto place = static_cast<std::size_t>(rank);
    outcome.why_not[place] = trainer.why_not_captured();
    outcome.calls[place] = watched.calls;
    outcome.renewed[place] = watched.renewed;
    if (rank == 0) outcome.parameters = testing::values_of(trainer);
  });
  return outcome;
}

TEST_CASE("replicas train the same if steps are replayed, or if a capture fails half-way on one of them") {
  const Replicas plain = train_replicas(false, never);
  for (const int fails : {never, 0, 1}) {
    CAPTURE(fails);
    const Replicas other = train_replicas(true, fails);
    REQUIRE(plain.parameters.size() == other.parameters.size());
    for (std::size_t i = 0; i < plain.parameters.size(); ++i)
      CHECK(at::equal(plain.parameters[i], other.parameters[i]));
    const bool failed = fails != never;
    CHECK(other.why_not[0] == (failed ? "the capture failed on another rank" : ""));
    CHECK(other.why_not[1] == (failed ? "all-reduce failed" : ""));
    CHECK(other.renewed == (failed ? std::array{1, 1} : std::array{0, 0}));
    CHECK(other.calls[0] > 1);
    if (failed) CHECK(other.calls[1] == fails + 1);
  }
}

}  // namespace trainyard::runner::captured_replicas_test
