// Communicator of GPUs by NCCL: c10d's ProcessGroupNCCL as the groups of `process_groups.h`. Compiled if
// LibTorch is a CUDA build. Other builds use `nccl_absent.cpp`.
// - All-reduces run on their own stream, at the same time as the computation. So do the messages of each
//   direction. `Work::wait` makes the current stream wait, never the host.
// - If a peer dies or exceeds the group's timeout, c10d's watchdog ends this process. Work on a GPU cannot be
//   cancelled, and NCCL's clean-up calls may hang.
#pragma once

#include <memory>
#include <string>

#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// Rendezvous through `store` under the prefix `name`. `host` connects the same ranks. Call
// `set_nccl_environment` (nccl_settings.h) before. InternalError in a build without NCCL.
std::unique_ptr<Communicator> nccl_communicator(const Store& store, const std::string& name,
                                                const GroupOptions& group, at::Device device,
                                                std::unique_ptr<Communicator> host);

// Version of the loaded library: "2.29.7". LD_PRELOAD may select another library than LibTorch's. Empty in a
// build without NCCL.
std::string nccl_version();

}  // namespace trainyard::runner
