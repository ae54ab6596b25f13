// Communicator made of c10d process groups without tags that run their operations one after the other, like
// NCCL's. `nccl_communicator` passes NCCL's groups, a test passes others.
// - Two neighbours of a chain have one group per direction. In a single group, a pending receive would block
//   every later send.
// - Sends and receives match in the order of the schedule, which is the same at both ends
//   (tests/runner/schedule/nccl_order_test.cpp).
// - Barriers, and tensors in host memory, use a communicator of the host. So they never wait for a device.
// - `renew` makes a new group for collectives and keeps the old one, because its clean-up might hang.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "base/text.h"
#include "runner/communicator/communicator.h"

namespace trainyard::runner {

using DeviceGroup = c10::intrusive_ptr<c10d::Backend>;

// One group, and the place of this rank in it.
struct GroupPlace {
  std::string name;  // unique to this group and the same on all its ranks
  int rank = 0;
  int size = 1;
  bool connect_now = true;  // else connect in the first call, which all ranks of the group make
};
using MakeDeviceGroup = std::function<DeviceGroup(const GroupPlace&)>;  // kept, for `renew`

// `host` connects the same ranks. All ranks make their groups in an order that cannot deadlock.
std::unique_ptr<Communicator> device_groups(const std::string& name, const GroupOptions& ranks,
                                            at::Device device, std::unique_ptr<Communicator> host,
                                            const char* transport, const MakeDeviceGroup& make);

// Helpers for every c10d group: they convert its errors and its work to ours.

// The first line of a LibTorch error, without "[source:line] " at its beginning.
inline std::string what_torch_says(const std::exception& error) {
  const std::string line = first_line(error.what());
  const auto place = line.find("] ");
  return line.starts_with("[") && place != std::string::npos ? line.substr(place + 2) : line;
}

// Calls `action`. If it fails: CommunicationError with the rank and the name `operation`.
template <class Action>
auto guarded(int rank, const char* operation, Action&& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    throw CommunicationError("rank " + std::to_string(rank) + ": " + operation +
                             " failed (a peer may have ended): " + what_torch_says(error));
  }
}

// Calls `action` and returns the operation that it has started.
template <class Action>
std::unique_ptr<Communicator::Work> start_work(int rank, const char* operation, const Action& action) {
  return finished_by([rank, operation, work = guarded(rank, operation, action)] {
    guarded(rank, operation, [&] { return work->wait(); });
  });
}

}  // namespace trainyard::runner
