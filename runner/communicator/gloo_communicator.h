// Communicator over TCP by LibTorch's Gloo. A process that uses it ignores SIGPIPE (device/rank_process.h), and
// refuses connections of other users of this host (accepted_connections.h).
#pragma once

#include <memory>
#include <string>

#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// Rendezvous through `store` under the prefix `name`, and a connection to every other rank. Ranks of one host
// use the loopback interface. Ranks of several hosts use the interface that GLOO_SOCKET_IFNAME names.
std::unique_ptr<Communicator> gloo_communicator(const Store& store, const std::string& name,
                                                const GroupOptions& group);

}  // namespace trainyard::runner
