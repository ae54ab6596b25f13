// Tensors of a GPU by a communicator that knows only host memory: where NCCL cannot be had, or ranks share a
// GPU. Each is copied to the host and back, and the host waits for it; good for development and tests, and a
// baseline for what NCCL saves.
#pragma once

#include <memory>

#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// `through` with tensors on `device` copied; all others it takes as they are. `allocate` is on `device`, and
// no memory is shared.
std::unique_ptr<Communicator> host_copies(std::unique_ptr<Communicator> through, at::Device device);

}  // namespace trainyard::runner
