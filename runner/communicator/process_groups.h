// A communicator made of groups that know no tags and run all that they are given one after the other, as
// those of NCCL do: `nccl_communicator` gives it such groups, a test others.
//
// A rank that has a receive under way would never get to a send behind it in the same group. Therefore two
// neighbours of a chain have two groups, one for each direction: at one end all are sends, at the other all
// are receives. They meet in the order in which the schedule has them, which is the same at both ends
// (tests/runner/schedule/nccl_order_test.cpp). Tensors in host memory, and barriers, go by a communicator of
// the host, so that they wait for no device.
//
// `renew` makes another group for collective calls, and keeps the old one: its clean-up might wait for ever.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "base/text.h"
#include "runner/communicator/communicator.h"

namespace trainyard::runner {

using DeviceGroup = c10::intrusive_ptr<c10d::Backend>;

// One group, seen from one of its ranks.
struct GroupPlace {
  std::string name;  // the same on all of its ranks, and on no others
  int rank = 0;
  int size = 1;
  bool connect_now = true;  // else in its first call, which all its ranks make
};
using MakeDeviceGroup = std::function<DeviceGroup(const GroupPlace&)>;  // kept, for `renew`

// `host` connects the same ranks. All of them make the same groups in an order in which none waits for
// another in a circle.
std::unique_ptr<Communicator> device_groups(const std::string& name, const GroupOptions& ranks,
                                            at::Device device, std::unique_ptr<Communicator> host,
                                            const char* transport, const MakeDeviceGroup& make);

// What c10d's groups have in common, whatever they send by: their errors as ours, their work as ours.

// What LibTorch says in one line, without the place in its source that the line may begin with.
inline std::string what_torch_says(const std::exception& error) {
  const std::string line = first_line(error.what());
  const auto place = line.find("] ");
  return line.starts_with("[") && place != std::string::npos ? line.substr(place + 2) : line;
}

// Calls `action`; where it fails CommunicationError names rank and deed.
template <class Action>
auto guarded(int rank, const char* deed, Action&& action) {
  try {
    return action();
  } catch (const std::exception& error) {
    throw CommunicationError("rank " + std::to_string(rank) + ": " + deed +
                             " failed, a peer may have ended: " + what_torch_says(error));
  }
}

class C10dWork final : public Communicator::Work {
 public:
  C10dWork(int rank, const char* deed, c10::intrusive_ptr<c10d::Work> work)
      : rank_(rank), deed_(deed), work_(std::move(work)) {}
  void wait() override {
    guarded(rank_, deed_, [&] { return work_->wait(); });
  }

 private:
  int rank_;
  const char* deed_;
  c10::intrusive_ptr<c10d::Work> work_;
};

// What `action` starts.
template <class Action>
std::unique_ptr<Communicator::Work> start_work(int rank, const char* deed, const Action& action) {
  return std::make_unique<C10dWork>(rank, deed, guarded(rank, deed, action));
}

}  // namespace trainyard::runner
