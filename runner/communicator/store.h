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

// A TCPStore on a free port of the loopback interface. This process serves it while the object lives.
// - Connections of other users of this host are refused (accepted_connections.h).
// - It has no other authentication. The way to it from other hosts is orchestrator/rank/store_relay.h.
struct ServedStore {
  Store store;
  int port = 0;
};
ServedStore serve_store();

}  // namespace trainyard::runner
