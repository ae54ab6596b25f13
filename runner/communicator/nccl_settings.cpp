#include "runner/communicator/nccl_settings.h"

#include <cstdlib>

namespace trainyard::runner {

void set_nccl_environment(bool shared_gpu) {
  const auto set = [](const char* name, const char* value) { ::setenv(name, value, /*replace=*/1); };
  const auto set_default = [](const char* name, const char* value) { ::setenv(name, value, /*replace=*/0); };
  // A failure or a timeout ends the process, without a clean-up that could hang.
  set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3");
  // The stream waits, never the host.
  set("TORCH_NCCL_BLOCKING_WAIT", "0");
  // Their flags in the store are outside the run's prefix: a timeout of one run would end all other runs.
  // The orchestrator ends the peers.
  set("TORCH_NCCL_DUMP_ON_TIMEOUT", "0");
  set("TORCH_NCCL_PROPAGATE_ERROR", "0");
  // Each direction has its own group for messages, so no other work waits behind them.
  set_default("TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "0");
  if (!shared_gpu) return;
  set_default("NCCL_MAX_CTAS", "8");     // the kernels of all ranks must fit on the GPU at the same time
  set_default("NCCL_NVLS_ENABLE", "0");  // ranks on the same GPU cannot use NVLS
}

std::string nccl_version_text(int code) {
  const int thousands = code < 10'000 ? 1'000 : 10'000;
  return std::to_string(code / thousands) + "." + std::to_string(code % thousands / 100) + "." +
         std::to_string(code % 100);
}

}  // namespace trainyard::runner
