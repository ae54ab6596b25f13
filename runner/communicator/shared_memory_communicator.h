// Shared-memory communicator for ranks on one host.
// - Tensors in memory of `Communicator::allocate` are not copied.
// - All-reduce: each rank sums its own shard of all ranks' tensors and writes the sum to all ranks. The order
//   of the ranks is fixed, so every rank has the same bits in every run.
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

// Rendezvous through `store` under the prefix `name`. Null on all ranks if they cannot share memory.
std::unique_ptr<Communicator> shared_memory_communicator(const Store& store, const std::string& name,
                                                         const GroupOptions& group);

// Messages between ranks through shared memory. The sender copies a tensor to its part of the memory. The
// receiver copies it to its first pending receive with the same tag.
class SharedMessages {
 public:
  explicit SharedMessages(SharedGroup& group);  // `group` must outlive the object

  // See Communicator.
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

  void take(int from, ExpectedList::iterator expected);
  void hand_out(int from);
  bool hand_out(int from, Message& message, std::uint64_t number);
  void take_back_what_was_read();

  SharedGroup& group_;
  std::vector<std::uint64_t> sent_;  // per rank: messages sent to it
  std::vector<std::uint64_t> read_;  // per rank: all messages up to this one were taken
  std::vector<ExpectedList> expected_;
  std::vector<Letter> letters_;  // sent messages, perhaps not yet read
};

}  // namespace trainyard::runner
