// Communicator over TCP by LibTorch's Gloo, and the store for the rendezvous of its ranks. A process that
// uses either ignores SIGPIPE (device/rank_process.h).
#pragma once

#include <memory>
#include <string>

#include "runner/communicator/communicator.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

// The store of a launch, under a prefix that belongs to this launch: a file that only this user can open, or a
// TCPStore, which the launcher serves, or rank 0 as with plain torchrun. CommunicationError if it does not
// answer.
Store connect_store(const Environment& environment);

// A TCPStore on a free port. This process serves it while the object lives. It has no authentication.
struct ServedStore {
  Store store;
  int port = 0;
};
enum class Listen { loopback, all_interfaces };
ServedStore serve_store(Listen where);

// Rendezvous through `store` under the prefix `name`, and a connection to every other rank.
std::unique_ptr<Communicator> gloo_communicator(const Store& store, const std::string& name,
                                                const GroupOptions& group);

}  // namespace trainyard::runner
