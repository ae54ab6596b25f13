// What ranks need to meet as the ranks of a communicator, whatever its transport.
#pragma once

#include <chrono>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace trainyard::runner {

// How long a rank waits for its peers before it gives up.
inline constexpr std::chrono::milliseconds communication_timeout = std::chrono::minutes(5);

using Store = c10::intrusive_ptr<c10d::Store>;

struct RankGroup {
  int rank = 0;
  int size = 1;
  bool one_host = true;  // all ranks are on this host
  std::chrono::milliseconds timeout = communication_timeout;
  bool chain = false;  // each exchanges messages with the rank before and the rank after it
};

}  // namespace trainyard::runner
