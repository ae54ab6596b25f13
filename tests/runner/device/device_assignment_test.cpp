// The device on which a rank computes, and the transport between such ranks.
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
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

// The transport of two ranks on these GPUs. Their tensors are in host memory, and the GPUs are only names.
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

TEST_CASE("on a cluster a rank uses the GPU of its local rank modulo the number of visible GPUs") {
  struct Case {
    int local_rank;
    std::optional<int> visible;
    const char* device;
  };
  for (const Case& each : std::array{
           Case{0, 1, "cuda:0"}, Case{3, 1, "cuda:0"},  // Slurm shows each task only its own GPU
           Case{3, 4, "cuda:3"},                        // all tasks of a host see all of its GPUs
           Case{5, 4, "cuda:1"},                        // more tasks than GPUs
       }) {
    CAPTURE(each.local_rank);
    CHECK(visible_gpu(each.local_rank, each.visible) == each.device);
  }
  for (const std::optional<int> visible : {std::optional<int>(), std::optional(0)})
    CHECK_THROWS_WITH_AS(visible_gpu(0, visible), doctest::Contains("no GPU is visible; set gpus_per_task"),
                         UserError);
}

TEST_CASE("if a launch has no GPU number for a rank, the rank determines it") {
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

TEST_CASE("an exception in a library's thread is one line and an exit code, and not a signal") {
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

TEST_CASE("ranks exchange their GPUs, which decide the transport") {
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

// The macro NCCL_VERSION(X, Y, Z) of nccl.h.
TEST_CASE("the version of NCCL is decoded as in nccl.h") {
  CHECK(nccl_version_text(22907) == "2.29.7");
  CHECK(nccl_version_text(23203) == "2.32.3");
  CHECK(nccl_version_text(2708) == "2.7.8");
}

TEST_CASE("NCCL settings with which one run could end others are fixed, whatever the environment is") {
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
  for (const char* name :
       {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "TORCH_NCCL_PROPAGATE_ERROR", "TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "NCCL_MAX_CTAS",
        "NCCL_NVLS_ENABLE"})
    ::unsetenv(name);
}

}  // namespace
