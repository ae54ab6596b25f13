// Errors if there is no memory left.
#include "runner/device/device.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::out_of_memory_test {

TEST_CASE("the size of a failed allocation is read from LibTorch's message, on either device") {
  CHECK(bytes_refused(
            "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 139.72 GiB") ==
        std::int64_t{5} << 29);
  CHECK(bytes_refused("CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; …)") == std::int64_t{20}
                                                                                           << 20);
  CHECK(!bytes_refused("mat1 and mat2 shapes cannot be multiplied"));
  std::string said;
  try {
    at::empty({std::int64_t{1} << 50}, at::kByte);  // 1 PiB
  } catch (const c10::Error& error) {
    said = error.what_without_backtrace();
  }
  CHECK(bytes_refused(said) == std::int64_t{1} << 50);
}

TEST_CASE("the error for a run that does not fit has model, batch, needed memory and existing memory") {
  experiments::Run run = testing::run_of("vgg11", 2);
  run.global_batch = 4096;
  run.gradient_accumulation = 2;
  CHECK(out_of_memory(run, "cuda:0", std::int64_t{4} << 30,
                      {.all_bytes = std::int64_t{140} << 30, .peak_bytes = std::int64_t{137} << 30})
            .what() ==
        std::string(
            "vgg11 with a batch of 4096 (1024 at a time) does not fit into the memory of cuda:0: it needs at "
            "least 141.00 GiB (137.00 GiB in use and 4.00 GiB more), but the device has 140.00 GiB; use a "
            "smaller batch, gradient_accumulation or more stages"));
  CHECK(std::string(out_of_memory(testing::run_of("mlp", 1), "cpu", std::int64_t{1} << 31, {}).what())
            .starts_with("mlp with a batch of 128 does not fit into the memory of cpu: cannot allocate "
                         "another 2.00 GiB"));
}

}  // namespace trainyard::runner::out_of_memory_test
