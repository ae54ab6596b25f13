// A communicator over TCP by Gloo, as LibTorch ships it, and the store through which its ranks meet.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "runner/communicator.h"
#include "runner/environment.h"

namespace trainyard::runner {

// How long a rank waits for its peers before it gives up.
inline constexpr std::chrono::milliseconds communication_timeout = std::chrono::minutes(5);

using Store = c10::intrusive_ptr<c10d::Store>;

// The store of a launch under the launch's own prefix: a client of the launcher's, or rank 0's own as with
// plain torchrun. CommunicationError where it does not answer.
Store connect_store(const Environment& environment);

struct GlooGroup {
  int rank = 0;
  int size = 1;
  bool one_host = true;  // all ranks are on this host: talk over its loopback interface
  std::chrono::milliseconds timeout = communication_timeout;
};

// Meets the other ranks through `store`, under the prefix `name`, and connects to each.
std::unique_ptr<Communicator> gloo_communicator(const Store& store, const std::string& name,
                                                const GlooGroup& group);

}  // namespace trainyard::runner
