// GPUs by NCCL, as LibTorch ships it: c10d's ProcessGroupNCCL as the groups of `process_groups.h`. Compiled
// and linked where LibTorch is a CUDA build (`nccl_absent.cpp` stands in elsewhere).
//
// All-reduces run on a stream of their own, beside what the GPU computes meanwhile, and so do the messages of
// each direction; `Work::wait` makes the current stream wait, never the host.
//
// A peer that dies or does not come within the group's timeout ends the process: c10d's watchdog does it,
// since nothing that is launched on a GPU can be called back, and no clean-up call of NCCL could be relied
// on.
#pragma once

#include <memory>
#include <string>

#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// Meets the other ranks through `store`, under the prefix `name`; `host` connects the same ranks. The
// environment must have what `nccl_settings.h` says. InternalError in a build without NCCL.
std::unique_ptr<Communicator> nccl_communicator(const Store& store, const std::string& name,
                                                const GroupOptions& group, at::Device device,
                                                std::unique_ptr<Communicator> host);

// Of the library that is loaded, which LD_PRELOAD may have chosen: "2.29.7"; empty where there is none.
std::string nccl_version();

}  // namespace trainyard::runner
