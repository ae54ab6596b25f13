#include "runner/communicator/shared_messages.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include "base/error.h"

namespace trainyard::runner {

namespace {

class Sent final : public Communicator::Work {
 public:
  void wait() override {}  // it was copied
};

}  // namespace

class SharedMessages::Received final : public Communicator::Work {
 public:
  Received(SharedMessages& owner, int from, ExpectedList::iterator expected)
      : owner_(owner), from_(from), expected_(expected) {}
  void wait() override { owner_.take(from_, expected_); }

 private:
  SharedMessages& owner_;
  int from_;
  ExpectedList::iterator expected_;
};

SharedMessages::SharedMessages(SharedGroup& group)
    : group_(group),
      sent_(static_cast<std::size_t>(group.size()), 0),
      read_(static_cast<std::size_t>(group.size()), 0),
      expected_(static_cast<std::size_t>(group.size())) {}

std::unique_ptr<Communicator::Work> SharedMessages::send(const at::Tensor& tensor, int to, int tag) {
  take_back_what_was_read();
  const std::uint64_t number = ++sent_[static_cast<std::size_t>(to)];
  Message& message = group_.message(group_.rank(), to, number);
  group_.wait("sending to a stage", [&]() -> std::optional<int> {
    const bool free = number <= messages_under_way || message.taken.load() == number - messages_under_way;
    return free ? std::nullopt : std::optional(to);
  });
  message.tag = tag;
  message.bytes = tensor.nbytes();
  message.offset = group_.blocks().take(tensor.nbytes());
  std::memcpy(group_.data(group_.rank(), message.offset), tensor.const_data_ptr(), tensor.nbytes());
  letters_.push_back({&message, number, message.offset});
  message.sent.store(number, std::memory_order_release);
  group_.ring();
  return std::make_unique<Sent>();
}

std::unique_ptr<Communicator::Work> SharedMessages::receive(const at::Tensor& tensor, int from, int tag) {
  auto& expected = expected_[static_cast<std::size_t>(from)];
  return std::make_unique<Received>(*this, from, expected.insert(expected.end(), {tensor, tag, false}));
}

void SharedMessages::take(int from, ExpectedList::iterator expected) {
  group_.wait("receiving from a stage", [&]() -> std::optional<int> {
    hand_out(from);
    return expected->arrived ? std::nullopt : std::optional(from);
  });
  expected_[static_cast<std::size_t>(from)].erase(expected);
}

// Copies each message that is there to the first receive of its tag.
void SharedMessages::hand_out(int from) {
  std::uint64_t& read = read_[static_cast<std::size_t>(from)];
  bool all_before_taken = true;
  for (std::uint64_t number = read + 1;; ++number) {
    Message& message = group_.message(from, group_.rank(), number);
    const std::uint64_t sent = message.sent.load(std::memory_order_acquire);
    if (sent < number) return;
    // A later one is in the place of one that was taken before those ahead of it.
    const bool was_taken = sent > number || message.taken.load() == number;
    if (!was_taken && !hand_out(from, message, number)) all_before_taken = false;
    if (all_before_taken) read = number;
  }
}

bool SharedMessages::hand_out(int from, Message& message, std::uint64_t number) {
  auto& expected = expected_[static_cast<std::size_t>(from)];
  const auto first = std::ranges::find_if(
      expected, [&](const Expected& one) { return !one.arrived && one.tag == message.tag; });
  if (first == expected.end()) return false;
  if (first->tensor.nbytes() != message.bytes)
    throw InternalError("rank " + std::to_string(from) + " sent " + std::to_string(message.bytes) +
                        " bytes where " + std::to_string(first->tensor.nbytes()) + " were expected");
  std::memcpy(first->tensor.mutable_data_ptr(), group_.data(from, message.offset), message.bytes);
  first->arrived = true;
  message.taken.store(number);
  group_.ring();
  return true;
}

void SharedMessages::take_back_what_was_read() {
  std::erase_if(letters_, [&](const Letter& letter) {
    if (letter.message->taken.load() < letter.number) return false;
    group_.blocks().give_back(letter.offset);
    return true;
  });
}

}  // namespace trainyard::runner
