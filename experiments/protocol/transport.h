// How the ranks of a group exchange tensors, decided from where they sit. The orchestrator asks before
// launch, so that what cannot work is an error of the file; the ranks ask again when they meet, because on a
// cluster only they know which GPU each of them was given.
#pragma once

#include <string>
#include <vector>

namespace trainyard::experiments {

enum class Transport {
  host,         // tensors are in host memory: memory that ranks share, or Gloo
  host_copies,  // tensors are on GPUs and travel as copies in host memory, likewise
  nccl
};

// What can be relied on where the ranks run.
struct NcclSupport {
  std::string version;             // of the library that is loaded, "2.29.7"; empty: this build has none
  bool several_ranks_gpu = false;  // NCCL_MULTI_RANK_GPU_ENABLE=1 is set
};

inline constexpr const char* multi_rank_variable = "NCCL_MULTI_RANK_GPU_ENABLE";

// `gpus`: by rank what tells its GPU from all others; empty for CPU cores. "auto" is NCCL where each rank has
// a GPU of its own and host copies where some share one; "gloo" never leaves the host. UserError where "nccl"
// is asked for and cannot work: on CPU cores, without NCCL, or where ranks share a GPU, unless NCCL is 2.30
// or later and several ranks a GPU are enabled.
Transport transport_of(const std::string& communicator, const std::vector<std::string>& gpus,
                       const NcclSupport& nccl);

// NCCL_MULTI_RANK_GPU_ENABLE of this process, and `version`.
NcclSupport nccl_support(const std::string& version);

}  // namespace trainyard::experiments
