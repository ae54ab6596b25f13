// Choice of the transport between the ranks of a group, from their devices. The orchestrator checks it before
// launch. The ranks choose again at rendezvous, because on a cluster only they can see their GPUs.
#pragma once

#include <string>
#include <vector>

namespace trainyard::experiments {

enum class Transport {
  host,         // tensors are in host memory: shared memory or Gloo
  host_copies,  // tensors are on GPUs and are copied through host memory
  nccl
};

// What NCCL supports on the host of the ranks.
struct NcclSupport {
  std::string version;             // of the loaded library, "2.29.7"; empty: built without NCCL
  bool several_ranks_gpu = false;  // NCCL_MULTI_RANK_GPU_ENABLE=1 is set
};

inline constexpr const char* multi_rank_variable = "NCCL_MULTI_RANK_GPU_ENABLE";

// The transport for `communicator`. `gpus`: a unique name of each rank's GPU, empty for CPU cores.
// - "auto": NCCL if each rank has its own GPU, host copies if ranks share one.
// - "gloo": always through the host.
// - "nccl": UserError on CPU cores, without NCCL, and if ranks share a GPU. To share a GPU, ranks need
//   NCCL 2.30 or later and `multi_rank_variable`.
Transport transport_of(const std::string& communicator, const std::vector<std::string>& gpus,
                       const NcclSupport& nccl);

// The support of NCCL `version`, with the environment variable of this process.
NcclSupport nccl_support(const std::string& version);

}  // namespace trainyard::experiments
