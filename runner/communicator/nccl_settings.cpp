#include "runner/communicator/nccl_settings.h"

#include <array>
#include <cstdlib>

namespace trainyard::runner {

std::span<const NcclSetting> nccl_settings() {
  using When = NcclSetting::When;
  static const std::array<NcclSetting, 7> settings{{
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3", When::always,
       "a failure or a timeout ends the process, without a clean-up that could hang"},
      {"TORCH_NCCL_BLOCKING_WAIT", "0", When::always, "the stream waits, never the host"},
      {"TORCH_NCCL_DUMP_ON_TIMEOUT", "0", When::always,
       "its flag in the store is outside the run's prefix: a timeout of one run would end all other runs"},
      {"TORCH_NCCL_PROPAGATE_ERROR", "0", When::always,
       "its flag has the same fault, and the orchestrator ends the peers"},
      {"TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "0", When::unless_set,
       "each direction has its own group for messages, so no other work waits behind them"},
      {"NCCL_MAX_CTAS", "8", When::shared, "the kernels of all ranks must fit on the GPU at the same time"},
      {"NCCL_NVLS_ENABLE", "0", When::shared, "ranks on the same GPU cannot use NVLS"},
  }};
  return settings;
}

void set_nccl_environment(bool shared_gpu) {
  for (const NcclSetting& setting : nccl_settings())
    if (setting.when != NcclSetting::When::shared || shared_gpu)
      ::setenv(setting.name.c_str(), setting.value.c_str(),
               setting.when == NcclSetting::When::always ? 1 : 0);
}

std::string nccl_version_text(int code) {
  const int thousands = code < 10'000 ? 1'000 : 10'000;
  return std::to_string(code / thousands) + "." + std::to_string(code % thousands / 100) + "." +
         std::to_string(code % 100);
}

}  // namespace trainyard::runner
