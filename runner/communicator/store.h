// The key-value store for the rendezvous of ranks. A process that uses it ignores SIGPIPE
// (device/rank_process.h).
#pragma once

#include "runner/communicator/communicator.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

// The store of a launch, under a prefix that belongs to this launch: a file that only this user can open, or a
// TCPStore, which the launcher serves, or rank 0 as with plain torchrun. CommunicationError if it does not
// answer.
Store connect_store(const Environment& environment);

}  // namespace trainyard::runner
