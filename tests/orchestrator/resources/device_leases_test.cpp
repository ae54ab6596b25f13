// Leases of cores and GPUs across the sweeps of a host: what conflicts, who is named, and what is given back.
#include "orchestrator/resources/device_leases.h"

#include <atomic>
#include <fstream>
#include <functional>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/sweep/sweep.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
#include "tests/support/patience.h"
#include "tests/support/without_rights.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

namespace fs = std::filesystem;

const HostUser first_user{"trainyard run first.toml", "/home/ana/yard"};
const HostUser second_user{"trainyard run second.toml", "/home/ben/yard"};

// Numbers that no core of the host has: each CPU is its own core.
std::vector<Device> numbered(const std::vector<int>& numbers) {
  std::vector<Device> devices;
  for (const int number : numbers) devices.push_back({"cpu:" + std::to_string(number), {number}});
  return devices;
}

Device numbered_gpu(int index, const std::string& uuid, const std::vector<int>& own_cores) {
  return {"cuda:" + std::to_string(index), own_cores, "NVIDIA H200", uuid};
}

std::vector<std::string> lock_names(const std::vector<LockPlace>& places) {
  std::vector<std::string> all;
  for (const LockPlace& place : places) all.push_back(place.file.filename().string() + " " + place.of);
  return all;
}

using LockNames = std::vector<std::string>;

struct ReleasingStatus : RememberingStatus {
  void message(const std::string& text) override {
    RememberingStatus::message(text);
    on_message();
  }
  std::function<void()> on_message;
};

}  // namespace

TEST_CASE("hyper-threads of a core share a lock, and a GPU has one, whatever a process calls it") {
  const auto first_thread = [](int cpu) { return cpu % 4; };  // 4 is the second hyper-thread of 0
  CHECK(lock_names(locks_of(numbered({0, 4, 3}), "/tmp", first_thread)) ==
        LockNames{"trainyard-core-0.lock core 0", "trainyard-core-3.lock core 3"});
  CHECK(lock_names(locks_of({numbered_gpu(1, "GPU-8f/../3", {2})}, "/tmp", first_thread)) ==
        LockNames{"trainyard-core-2.lock core 2", "trainyard-gpu-GPU-8f----3.lock GPU cuda:1"});
  CHECK(lock_names(locks_of({numbered_gpu(0, "GPU-8f/../3", {6})}, "/tmp", first_thread)) ==
        LockNames{"trainyard-core-2.lock core 2", "trainyard-gpu-GPU-8f----3.lock GPU cuda:0"});
  CHECK(lock_names(locks_of({{"slurm", {}, "as the launcher chose"}}, "/tmp", first_thread)).empty());
}

TEST_CASE("two sweeps lease different devices at once, and the second never gets one of the first") {
  const TemporaryFolder folder;
  DeviceLeases first(folder.path, first_user), second(folder.path, second_user);
  REQUIRE(first.try_take(numbered({9000, 9001})));
  CHECK(second.try_take(numbered({9002})));
  CHECK_FALSE(second.try_take(numbered({9000})));
  CHECK(contains(second.taken(), "core 9000 is in use by process " + std::to_string(::getpid()) + " of "));
  CHECK(contains(second.taken(), "(trainyard run first.toml, yard /home/ana/yard), since 20"));
  CHECK_FALSE(
      second.try_take({numbered_gpu(0, "GPU-1", {9003}), numbered_gpu(1, "GPU-2", {9001})}));  // all or none
  CHECK(first.try_take({numbered_gpu(3, "GPU-1", {9004})}));
  CHECK_FALSE(second.is_free(numbered_gpu(0, "GPU-1", {9005})));  // another number, the same GPU
  CHECK(contains(second.taken(), "GPU cuda:0 is in use by "));
  CHECK(second.is_free(numbered_gpu(0, "GPU-2", {9005})));
  first.give_back(numbered({9000, 9001}));
  CHECK(second.try_take(numbered({9000, 9001})));
  CHECK_THROWS_AS(first.give_back(numbered({9000})), InternalError);
}

TEST_CASE("if the lock of one device cannot be used, the others are given back") {
  const TemporaryFolder folder;
  DeviceLeases first(folder.path, first_user), second(folder.path, second_user);
  fs::create_directory(folder.path / "trainyard-core-9001.lock");
  CHECK_THROWS_AS(first.try_take(numbered({9000, 9001})), UserError);
  CHECK(second.is_free(numbered({9000}).front()));
}

TEST_CASE("a device that two runs of a sweep share is free when both have ended") {
  const TemporaryFolder folder;
  DeviceLeases first(folder.path, first_user), second(folder.path, second_user);
  REQUIRE(first.try_take(numbered({9000})));
  REQUIRE(first.try_take(numbered({9000, 9001})));
  first.give_back(numbered({9000}));
  CHECK_FALSE(second.is_free(numbered({9000}).front()));
  first.give_back(numbered({9000, 9001}));
  CHECK(second.is_free(numbered({9000}).front()));
}

TEST_CASE("a sweep that waits for devices keeps those that it has, and a signal ends the wait") {
  const TemporaryFolder folder;
  DeviceLeases first(folder.path, first_user), second(folder.path, second_user),
      third(folder.path, second_user);
  REQUIRE(first.try_take(numbered({9001})));
  std::atomic<int> stop = 0;
  std::vector<std::string> reported;
  CHECK_FALSE(second.wait(numbered({9000, 9001}), stop, [&](const std::string& taken) {
    reported.push_back(taken);
    CHECK_FALSE(third.is_free(numbered({9000}).front()));
    stop = 1;
  }));
  REQUIRE(reported.size() == 1);
  CHECK(contains(reported[0], "core 9001 is in use by process "));
  stop = 0;
  DeviceLeases fourth(folder.path, second_user);
  first.give_back(numbered({9001}));
  CHECK(fourth.wait(numbered({9001}), stop, [](const std::string&) { FAIL("nobody has it"); }));
}

TEST_CASE("devices are leased across users, and those of a killed process are free") {
  const TemporaryFolder folder;
  fs::permissions(folder.path, fs::perms(01777));
  const pid_t child = ::fork();
  if (child == 0) {
    const WithoutRights nobody;
    DeviceLeases held(folder.path, second_user);
    if (held.try_take(numbered({9000}))) std::ofstream(folder.path / "taken") << "yes";
    ::pause();
    ::_exit(0);
  }
  REQUIRE(becomes_true(tests::patience, [&] { return text_of(folder.path / "taken") == "yes"; }));
  DeviceLeases leases(folder.path, first_user);
  CHECK_FALSE(leases.try_take(numbered({9000})));
  CHECK(contains(leases.taken(), "core 9000 is in use by process " + std::to_string(child) + " of "));
  if (::geteuid() == 0) CHECK_FALSE(contains(leases.taken(), " of root "));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(leases.try_take(numbered({9000})));
}

TEST_CASE("a run waits for a core that another sweep has, and says once who has it") {
  SweepFixture bench({mlp_run("single", 1, 0)});
  bench.journal();
  bench.experiment.machine.exclusive_host = false;
  const int core = usable_cores().front();
  bench.devices = core_devices({core});
  DeviceLeases own(bench.folder.path, first_user), others(bench.folder.path, second_user);
  REQUIRE(others.try_take(bench.devices));
  bench.options.leases = &own;
  ReleasingStatus status;
  status.on_message = [&] {
    CHECK(status.events.empty());  // the run has not started
    others.give_back(bench.devices);
  };
  const auto launcher = local_launcher(bench.programs);
  const SweepResult result = run_sweep(bench.experiment, bench.plan(), bench.yard, bench.database,
                                       bench.programs, *launcher, status, bench.stop, bench.options);
  CHECK(result.finished == 1);
  REQUIRE(status.messages.size() == 1);
  CHECK(contains(status.messages[0], "waiting: core "));
  CHECK(contains(status.messages[0], " (trainyard run second.toml, yard /home/ben/yard), since "));
  CHECK(others.is_free(bench.devices.front()));  // given back after the run
}

TEST_CASE("a run starts at once on a core that no other sweep has") {
  if (!have_two_cores()) return;
  const std::vector<int> usable = usable_cores();
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1)});
  bench.journal();
  bench.experiment.machine.exclusive_host = false;
  bench.devices = core_devices({usable[0], usable[1]});
  DeviceLeases own(bench.folder.path, first_user), others(bench.folder.path, second_user);
  REQUIRE(others.try_take({bench.devices[0]}));
  bench.options.leases = &own;
  CHECK(bench.sweep().finished == 2);
  CHECK(bench.status.messages.empty());
  for (const std::size_t run : {0U, 1U}) {
    const auto launch = nlohmann::json::parse(text_of(bench.attempt(run) / "run.json"));
    CHECK(launch["cores"] == nlohmann::json{{usable[1]}});
  }
}
