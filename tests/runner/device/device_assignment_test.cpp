// Which device a rank computes on, and by what ranks talk that sit so.
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "runner/communicator/nccl_communicator.h"
#include "runner/communicator/nccl_settings.h"
#include "runner/device/device.h"
#include "runner/device/gpu.h"
#include "runner/device/rank_process.h"
#include "runner/trainer/mesh.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/replicas.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;
using namespace trainyard::runner::testing;

// Ranks whose tensors are in host memory, on GPUs by name only.
std::string transport_of_two(const std::string& communicator, const std::array<std::string, 2>& gpus) {
  std::string transport;
  run_mesh(
      {2, 1},
      [&](Connections& ranks) {
        const at::Tensor sum = at::full({3}, 1.0 + ranks.position.replica);
        ranks.replicas->all_reduce(sum)->wait();
        if (!sum.eq(3).all().item<bool>()) throw std::runtime_error("a wrong sum");
        if (ranks.position.replica == 0) transport = ranks.transport();
      },
      communicator,
      [&](int rank) {
        return DeviceAssignment{at::kCPU, "cuda:0", gpus[static_cast<std::size_t>(rank)]};
      });
  return transport;
}

TEST_CASE("on a cluster a rank takes the GPU of its local rank, counted round those that it sees") {
  struct Case {
    int local_rank;
    std::optional<int> visible;
    const char* device;
  };
  for (const Case& each : std::array{
           Case{0, 1, "cuda:0"}, Case{3, 1, "cuda:0"},  // Slurm shows each task its own GPU alone
           Case{3, 4, "cuda:3"},                        // all tasks of a host see all of its GPUs
           Case{5, 4, "cuda:1"},                        // more tasks than GPUs
       }) {
    CAPTURE(each.local_rank);
    CHECK(visible_gpu(each.local_rank, each.visible) == each.device);
  }
  for (const std::optional<int> visible : {std::optional<int>(), std::optional(0)})
    CHECK_THROWS_WITH_AS(visible_gpu(0, visible), doctest::Contains("sees none; set gpus_per_task"),
                         UserError);
}

TEST_CASE("a launch that leaves it to the rank which GPU it has is read as that GPU") {
  experiments::Launch launch;
  launch.devices = {"cpu:0", experiments::gpu_of_task(1)};
  Environment second;
  second.rank = 1;
  if (gpu_count().value_or(0) == 0)
    CHECK_THROWS_AS(name_device(launch, second), UserError);
  else
    name_device(launch, second);
  name_device(launch, Environment());
  CHECK(launch.devices[0] == "cpu:0");
  CHECK(resolve_device(launch, Environment()).device.is_cpu());
  CHECK(resolve_device(launch, Environment()).gpu.empty());
}

TEST_CASE("an exception in a thread of a library is one line and an exit code, not a signal") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    report_at_terminate();
    std::thread([] { throw std::runtime_error("Watchdog caught a timeout\nframe #0"); }).join();
    _exit(0);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 200> part{};
  for (ssize_t size = 0; (size = ::read(ends[0], part.data(), part.size())) > 0;)
    said.append(part.data(), static_cast<std::size_t>(size));
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  CHECK(said == "error: Watchdog caught a timeout\n");
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
}

TEST_CASE("ranks tell one another their GPUs, and talk as these allow") {
  CHECK(transport_of_two("auto", {"", ""}) == "shared memory");
  CHECK(transport_of_two("gloo", {"", ""}) == "gloo");
  CHECK(transport_of_two("auto", {"h GPU-a", "h GPU-a"}) == "shared memory, host copies");
  CHECK(transport_of_two("gloo", {"h GPU-a", "h GPU-b"}) == "gloo, host copies");
  CHECK_THROWS_WITH_AS(transport_of_two("nccl", {"", ""}), doctest::Contains("ranks train on CPU cores"),
                       UserError);
  CHECK_THROWS_WITH_AS(transport_of_two("nickel", {"", ""}),
                       doctest::Contains("no communicator \"nickel\"; choose from auto, gloo, nccl"),
                       UserError);
}

// NCCL's NCCL_VERSION(X, Y, Z): nccl.h
TEST_CASE("NCCL's version is read as NCCL counts it") {
  CHECK(nccl_version_text(22907) == "2.29.7");
  CHECK(nccl_version_text(23203) == "2.32.3");
  CHECK(nccl_version_text(2708) == "2.7.8");
}

TEST_CASE("settings of NCCL that one run could end others by stand, whatever the environment says") {
  ::setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "1", 1);
  ::setenv("TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "1", 1);
  ::setenv("NCCL_NVLS_ENABLE", "1", 1);
  set_nccl_environment(/*shared_gpu=*/false);
  CHECK(std::getenv("NCCL_MAX_CTAS") == nullptr);
  set_nccl_environment(/*shared_gpu=*/true);
  CHECK(std::string(std::getenv("NCCL_MAX_CTAS")) == "8");
  CHECK(std::string(std::getenv("NCCL_NVLS_ENABLE")) == "1");
  CHECK(std::string(std::getenv("TORCH_NCCL_DUMP_ON_TIMEOUT")) == "0");
  CHECK(std::string(std::getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING")) == "3");
  CHECK(std::string(std::getenv("TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING")) == "1");
  for (const NcclSetting& setting : nccl_settings()) ::unsetenv(setting.name.c_str());
}

}  // namespace
