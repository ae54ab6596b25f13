// What c10d's groups have in common, whatever they send by: their errors as ours, their work as ours.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "base/printable.h"
#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// What LibTorch says in one line, without the place in its source that the line may begin with.
inline std::string what_torch_says(const std::exception& error) {
  const std::string line = models::first_line(error.what());
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
