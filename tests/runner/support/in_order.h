// A communicator that matches messages in order like NCCL, whatever their tags. Floating-point tensors stand
// for those on a GPU. All others are treated as in host memory, and counted.
#pragma once

#include <memory>

#include "runner/communicator/communicator.h"

namespace trainyard::runner::testing {

// `host_messages` counts messages in host memory. It must outlive the communicator.
std::unique_ptr<Communicator> in_order(std::unique_ptr<Communicator> through, int& host_messages);

}  // namespace trainyard::runner::testing
