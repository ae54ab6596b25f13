// Names of devices, and errors for names that do not exist here.
#include "runner/device/device.h"

#include <array>

#include "base/error.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::device_test {

TEST_CASE("a device of cores is the CPU, and a device of CUDA is the GPU with that number") {
  CHECK(device_named("cpu:0-1").is_cpu());
  CHECK(device_named("cpu").is_cpu());
  const at::Device second = device_named("cuda:1", 2);
  CHECK(second.is_cuda());
  CHECK(second.index() == 1);
}

TEST_CASE("the error for an impossible device has the reason and the available devices") {
  struct Case {
    const char* name;
    std::optional<int> gpus;
    const char* said;
  };
  const std::array cases{
      Case{"cuda:0", std::nullopt, "has no CUDA"},
      Case{"cuda:0", 0, "there is no GPU cuda:0; no GPU is visible"},
      Case{"cuda:1", 1, "there is no GPU cuda:1; use cuda:0, the only GPU"},
      Case{"cuda:9", 8, "use cuda:0 to cuda:7"},
      Case{"cuda:", 8, "\"cuda:\" is not a device"},
      Case{"cuda:-1", 8, "is not a device"},
      Case{"cuda:1x", 8, "is not a device"},
      Case{"tpu:0", 8, "\"tpu:0\" is not a device"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.name);
    CHECK_THROWS_WITH_AS(device_named(each.name, each.gpus), doctest::Contains(each.said), UserError);
  }
}

TEST_CASE("the UUID of a GPU is written as by nvidia-smi") {
  // 8, 4, 4, 4 and 12 digits: RFC 9562, section 4
  CHECK(gpu_uuid("\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10") ==
        "GPU-01234567-89ab-cdef-fedc-ba9876543210");
}

TEST_CASE("GPUs are listed with number, name, memory and UUID") {
  CHECK(to_json({{1, "NVIDIA H200", 150'754'820'096, "GPU-7a"}}).dump() ==
        R"([{"index":1,"name":"NVIDIA H200","memory_bytes":150754820096,"uuid":"GPU-7a"}])");
  CHECK(to_json(std::vector<GpuFacts>{}).dump() == "[]");
}

}  // namespace trainyard::runner::device_test
