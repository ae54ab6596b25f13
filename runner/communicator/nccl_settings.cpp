#include "runner/communicator/nccl_settings.h"

#include <array>
#include <cstdlib>

namespace trainyard::runner {

std::span<const NcclSetting> nccl_settings() {
  using When = NcclSetting::When;
  static const std::array<NcclSetting, 7> settings{{
      {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "3", When::always,
       "what fails or takes longer than the timeout ends the process, and cleans up nothing that could hang"},
      {"TORCH_NCCL_BLOCKING_WAIT", "0", When::always, "waiting is the stream's, never the host's"},
      {"TORCH_NCCL_DUMP_ON_TIMEOUT", "0", When::always,
       "its flag stands in the store outside of the run's prefix: one run's time-out would end all others"},
      {"TORCH_NCCL_PROPAGATE_ERROR", "0", When::always, "likewise; the orchestrator ends the peers"},
      {"TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "0", When::unless_set,
       "messages of one direction have a group of their own, so nothing else waits behind them"},
      {"NCCL_MAX_CTAS", "8", When::shared, "the kernels of all ranks have to fit on the GPU at once"},
      {"NCCL_NVLS_ENABLE", "0", When::shared, "ranks of one GPU cannot use it"},
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
  const int thousands = code < 10'000 ? 1'000 : 10'000;  // 2.8 and older: 2708 is 2.7.8
  return std::to_string(code / thousands) + "." + std::to_string(code % thousands / 100) + "." +
         std::to_string(code % 100);
}

}  // namespace trainyard::runner
