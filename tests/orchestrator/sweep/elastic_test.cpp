// Elastic runs: how many replicas the next attempt has, and why.
#include <algorithm>
#include <cstdlib>

#include <doctest/doctest.h>

#include "experiments/protocol/launch.h"
#include "orchestrator/plan/membership.h"
#include "tests/orchestrator/support/sweep_fixture.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

// Rank 0 writes `start`, a probe, two records per epoch, and is killed after the checkpoint of epoch 2.
constexpr const char* after_two_epochs = "kill-after-6";

experiments::Run elastic_run(std::int64_t replicas, std::int64_t least) {
  experiments::Run run = mlp_run("ddp", replicas, 0);
  run.epochs = 4;
  run.checkpoint = "epoch";
  run.strategy.min_replicas = least;
  return run;
}

// A host with so many GPUs. Ranks are pinned to a core that exists.
std::vector<Device> host_with(std::size_t devices) {
  std::vector<Device> host;
  for (std::size_t i = 0; i < devices; ++i)
    host.push_back(
        {"cuda:" + std::to_string(i), {usable_cores().front()}, "NVIDIA H200", "GPU-" + std::to_string(i)});
  return host;
}

struct Bench : SweepFixture {
  Bench(std::int64_t replicas, std::int64_t least, std::size_t devices_now)
      : SweepFixture({elastic_run(replicas, least)}) {
    devices = host_with(devices_now);
    options.backoff_seconds = 0.01;
    journal();
  }
  experiments::Launch launched(int number) const {
    return experiments::read_launch(attempt(0, number) / experiments::run_file_name);
  }
};

std::string cause_of_attempt(const Bench& bench, int number) {
  const auto membership = bench.launched(number).membership;
  return membership ? membership->cause : "";
}

}  // namespace

TEST_CASE("fewer replicas are never fewer than min_replicas, and a run that is not elastic has all") {
  experiments::Strategy strategy{.kind = "ddp", .replicas = 4, .min_replicas = 2};
  using experiments::Membership;
  CHECK(membership_of(strategy, 3, "x") == Membership{3, "3 of 4 replicas: x"});
  CHECK(membership_of(strategy, 1, "x") == Membership{2, "2 of 4 replicas: x"});
  CHECK(membership_of(strategy, 4, "x") == std::nullopt);
  CHECK(membership_of(strategy, 9, "x") == std::nullopt);
  strategy.min_replicas.reset();
  CHECK(membership_of(strategy, 1, "x") == std::nullopt);
}

TEST_CASE("the device of a lost rank is left out first") {
  const auto names = [](const std::vector<Device>& devices) {
    std::string text;
    for (const Device& device : devices) text += device.name.substr(5);
    return text;
  };
  CHECK(names(devices_of_members(host_with(4), 3, {"cuda:1"})) == "023");
  CHECK(names(devices_of_members(host_with(4), 2, {"cuda:0", "cuda:2"})) == "13");
  CHECK(names(devices_of_members(host_with(3), 2, {})) == "01");
  CHECK(names(devices_of_members(host_with(2), 2, {"cuda:0"})) == "10");  // it is needed
  auto shared = host_with(2);
  shared.push_back(shared.front());
  CHECK(names(devices_of_members(shared, 2, {"cuda:1"})) == "01");  // not two ranks on one device
}

TEST_CASE("a retry after a killed rank has one replica fewer, on the devices of the others, and finishes") {
  Bench bench(3, 2, 3);
  bench.options.max_retries = 1;
  bench.on_message("1", after_two_epochs);
  bench.on_message("0", "hang-after-6");
  bench.on_message("2", "hang-after-6");
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.launched(1).devices.size() == 3);
  CHECK(cause_of_attempt(bench, 1) == "");
  CHECK(bench.launched(2).devices == std::vector<std::string>{"cuda:0", "cuda:2"});
  CHECK(bench.launched(2).strategy().replicas == 2);
  CHECK(bench.launched(2).run.strategy.replicas == 3);
  CHECK(bench.launched(2).resumes.has_value());
  const std::string cause = "2 of 3 replicas: rank 1 was killed in attempt 1";
  CHECK(cause_of_attempt(bench, 2) == cause);
  CHECK(std::ranges::count(bench.status.messages, "mlp ddp seed 0: " + cause) == 1);
  const auto finals = db::final_metrics(bench.database, "bench");
  REQUIRE(finals.size() == 1);
  CHECK_FALSE(finals[0].times_count);
  CHECK(finals[0].times_problem == cause);
  CHECK(finals[0].fewer_replicas);
  CHECK(finals[0]["test_accuracy"] == doctest::Approx(0.9));
  CHECK(finals[0].epochs == 4);
  // The run has finished, and a plan does not begin it again.
  CHECK(bench.plan().runs[0].state == PlanState::finished);
}

TEST_CASE("retries lose one replica each, down to min_replicas, and a later sweep begins with all") {
  Bench bench(4, 2, 4);
  bench.options.max_retries = 3;
  bench.on_message("0", "kill");
  CHECK(bench.sweep().finished == 0);
  CHECK(cause_of_attempt(bench, 2) == "3 of 4 replicas: rank 0 was killed in attempt 1");
  CHECK(cause_of_attempt(bench, 3) == "2 of 4 replicas: rank 0 was killed in attempt 2");
  CHECK(cause_of_attempt(bench, 4) == "2 of 4 replicas: rank 0 was killed in attempt 3");
  bench.on_message("0", "finish");
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.launched(5).devices.size() == 4);
  CHECK(cause_of_attempt(bench, 5) == "");
}

TEST_CASE("a rank that ends with an error of its own is not lost, so its retry has all replicas") {
  Bench bench(3, 2, 3);
  bench.options.max_retries = 1;
  bench.on_message("1", "second");
  CHECK(bench.sweep().finished == 1);
  CHECK(bench.launched(2).devices.size() == 3);
  CHECK_FALSE(db::final_metrics(bench.database, "bench").at(0).fewer_replicas);
}

TEST_CASE(
    "an unfinished run continues on fewer devices with one replica each, and with more devices has more") {
  Bench bench(4, 2, 4);
  bench.on_message("0", "fail");
  CHECK(bench.sweep().finished == 0);
  const auto replicas_with = [&](std::size_t devices) {
    bench.devices = host_with(devices);
    return bench.plan().runs[0].devices.size();
  };
  CHECK(replicas_with(4) == 4);
  CHECK(replicas_with(3) == 3);
  CHECK(replicas_with(1) == 2);
  CHECK(replicas_with(2) == 2);
  const Plan plan = bench.plan();
  REQUIRE(plan.runs[0].membership.has_value());
  CHECK(plan.runs[0].membership->cause == "2 of 4 replicas: there are 2 devices, not 4");
  CHECK_FALSE(plan.runs[0].devices_shared);
  CHECK(bench.sweep().finished == 0);
  CHECK(bench.launched(2).devices.size() == 2);
  CHECK(replicas_with(3) == 3);  // a device came back
  bench.on_message("0", "finish");
  CHECK(bench.sweep().finished == 1);
  CHECK(cause_of_attempt(bench, 3) == "3 of 4 replicas: there are 3 devices, not 4");
}

TEST_CASE("the first attempt of a run has all replicas, which may share cores, but not a GPU") {
  Bench bench(3, 2, 2);
  CHECK(bench.plan().runs[0].membership->cause == "2 of 3 replicas: there are 2 devices, not 3");
  CHECK_FALSE(bench.plan().runs[0].devices_shared);
  bench.devices = core_devices({usable_cores().front()});
  CHECK(bench.plan().runs[0].devices.size() == 3);
  CHECK(bench.plan().runs[0].devices_shared);
  CHECK(bench.sweep().finished == 1);
}

TEST_CASE("in a shared Slurm allocation each task gets one replica") {
  experiments::Machine machine;
  ::setenv("SLURM_NTASKS", "3", 1);
  CHECK(shared_tasks(machine) == std::nullopt);
  machine.launcher = "slurm";
  machine.allocation = "job";
  CHECK(shared_tasks(machine) == std::nullopt);
  machine.allocation = "shared";
  CHECK(shared_tasks(machine) == 3);
  Bench bench(4, 2, 4);
  PlannedRun run = bench.plan().runs[0];
  shrink_to_devices(run, true, shared_tasks(machine), bench.database);
  CHECK(run.devices.size() == 3);
  CHECK(run.membership->cause == "3 of 4 replicas: the allocation has 3 tasks");
  ::unsetenv("SLURM_NTASKS");
  CHECK(shared_tasks(machine) == std::nullopt);
}
