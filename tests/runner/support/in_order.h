// A communicator whose messages meet as those of NCCL do: in their order, whatever their tags. Tensors of
// floating-point numbers stand for those on a GPU; all others are as in host memory, and are counted.
#pragma once

#include <memory>

#include "runner/communicator/communicator.h"

namespace trainyard::runner::testing {

// `host_messages` counts what is sent in host memory; it must outlive the communicator.
std::unique_ptr<Communicator> in_order(std::unique_ptr<Communicator> through, int& host_messages);

}  // namespace trainyard::runner::testing
