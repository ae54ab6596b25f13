// A communicator for ranks of one host, over memory that they share: nothing is copied that lies in memory of
// `Communicator::allocate`. In an all-reduce each rank adds up its slice of all ranks' numbers, in the order
// of the ranks, and writes the sum to all: every rank has the same bits, run after run.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/communicator/communicator.h"
#include "runner/communicator/shared_memory.h"

namespace trainyard::runner {

// Meets the other ranks through `store`, under the prefix `name`. Null, on every rank, where they cannot
// share memory.
std::unique_ptr<Communicator> shared_memory_communicator(const Store& store, const std::string& name,
                                                         const GroupOptions& group);

// Messages from one rank to another through memory that both see: the sender copies a tensor to its part of
// the memory, the receiver copies it to the first tensor that it expects under the message's tag.

class SharedMessages {
 public:
  explicit SharedMessages(SharedGroup& group);  // which must outlive it

  // As those of Communicator.
  std::unique_ptr<Communicator::Work> send(const at::Tensor& tensor, int to, int tag);
  std::unique_ptr<Communicator::Work> receive(const at::Tensor& tensor, int from, int tag);

 private:
  struct Expected {
    at::Tensor tensor;
    std::int64_t tag = 0;
    bool arrived = false;
  };
  using ExpectedList = std::list<Expected>;
  struct Letter {
    Message* message;
    std::uint64_t number;
    std::uint64_t offset;
  };
  class Received;

  void take(int from, ExpectedList::iterator expected);
  void hand_out(int from);
  bool hand_out(int from, Message& message, std::uint64_t number);
  void take_back_what_was_read();

  SharedGroup& group_;
  std::vector<std::uint64_t> sent_;  // messages to each rank
  std::vector<std::uint64_t> read_;  // from each rank: all up to here were taken
  std::vector<ExpectedList> expected_;
  std::vector<Letter> letters_;  // sent and perhaps not yet read
};

}  // namespace trainyard::runner
