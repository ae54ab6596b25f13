// A communicator over TCP by Gloo, as LibTorch ships it, and the store through which its ranks meet. Who uses
// either no longer takes SIGPIPE (process.h).
#pragma once

#include <memory>
#include <string>

#include "runner/communicator/communicator.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

// The store of a launch under the launch's own prefix: a client of the launcher's, or rank 0's own as with
// plain torchrun. CommunicationError where it does not answer.
Store connect_store(const Environment& environment);

// A store of its own on a free port of 127.0.0.1. This process serves it while the object lives.
struct LocalStore {
  Store store;
  int port = 0;
};
LocalStore open_local_store();

// Meets the other ranks through `store`, under the prefix `name`, and connects to each.
std::unique_ptr<Communicator> gloo_communicator(const Store& store, const std::string& name,
                                                const GroupOptions& group);

}  // namespace trainyard::runner
