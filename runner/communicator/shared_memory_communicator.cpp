#include "runner/communicator/shared_memory_communicator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/networks/libtorch_private.h"
#include "runner/communicator/shared_memory.h"
#include "runner/device/step_times.h"

namespace trainyard::runner {

namespace {

// Messages between ranks through shared memory. The sender copies a tensor to its part of the memory. The
// receiver copies it to its first pending receive with the same tag.
class SharedMessages {
 public:
  explicit SharedMessages(SharedGroup& group)  // `group` must outlive the object
      : group_(group),
        sent_(static_cast<std::size_t>(group.size()), 0),
        read_(static_cast<std::size_t>(group.size()), 0),
        expected_(static_cast<std::size_t>(group.size())) {}

  // See Communicator.
  std::unique_ptr<Communicator::Work> send(const at::Tensor& tensor, int to, int tag) {
    take_back_what_was_read();
    const std::uint64_t number = ++sent_[static_cast<std::size_t>(to)];
    Message& message = group_.message(group_.rank(), to, number);
    group_.wait("sending a message", [&]() -> std::optional<int> {
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
    return finished_by([] {});  // the tensor is copied
  }

  std::unique_ptr<Communicator::Work> receive(const at::Tensor& tensor, int from, int tag) {
    auto& expected = expected_[static_cast<std::size_t>(from)];
    const auto place = expected.insert(expected.end(), {tensor, tag, false});
    return finished_by([this, from, place] { take(from, place); });
  }

  // Waits for a message with this tag that nobody expects, and returns its sender.
  int wait_for_any(int tag) {
    std::optional<int> from, lost;
    int calls = 0;
    group_.wait("receiving a message", [&]() -> std::optional<int> {
      for (int other = 0; other < group_.size() && !from; ++other)
        if (other != group_.rank() && has_arrived(other, tag)) from = other;
      if (from) return std::nullopt;
      if (++calls > SharedGroup::spin_limit && !lost) lost = group_.lost_rank();  // asks the system
      return lost.value_or(group_.rank() == 0 ? 1 : 0);
    });
    return *from;
  }

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

  bool has_arrived(int from, int tag) {
    for (std::uint64_t number = read_[static_cast<std::size_t>(from)] + 1;; ++number) {
      const Message& message = group_.message(from, group_.rank(), number);
      const std::uint64_t sent = message.sent.load(std::memory_order_acquire);
      if (sent < number) return false;
      if (sent == number && message.taken.load() != number && message.tag == tag) return true;
    }
  }

  void take(int from, ExpectedList::iterator expected) {
    group_.wait("receiving a message", [&]() -> std::optional<int> {
      hand_out(from);
      return expected->arrived ? std::nullopt : std::optional(from);
    });
    expected_[static_cast<std::size_t>(from)].erase(expected);
  }

  // Copies each message that has arrived to the first pending receive with its tag.
  void hand_out(int from) {
    std::uint64_t& read = read_[static_cast<std::size_t>(from)];
    bool all_before_taken = true;
    for (std::uint64_t number = read + 1;; ++number) {
      Message& message = group_.message(from, group_.rank(), number);
      const std::uint64_t sent = message.sent.load(std::memory_order_acquire);
      if (sent < number) return;
      // A message may be taken before earlier ones, and a later message may already have its place.
      const bool was_taken = sent > number || message.taken.load() == number;
      if (!was_taken && !hand_out(from, message, number)) all_before_taken = false;
      if (all_before_taken) read = number;
    }
  }

  bool hand_out(int from, Message& message, std::uint64_t number) {
    auto& expected = expected_[static_cast<std::size_t>(from)];
    const auto first = std::ranges::find_if(
        expected, [&](const Expected& one) { return !one.arrived && one.tag == message.tag; });
    if (first == expected.end()) return false;
    if (first->tensor.nbytes() != message.bytes)
      throw InternalError("rank " + std::to_string(from) + " sent " + std::to_string(message.bytes) +
                          " bytes, but the receiver expects " + std::to_string(first->tensor.nbytes()));
    std::memcpy(first->tensor.mutable_data_ptr(), group_.data(from, message.offset), message.bytes);
    first->arrived = true;
    message.taken.store(number);
    group_.ring();
    return true;
  }

  void take_back_what_was_read() {
    std::erase_if(letters_, [&](const Letter& letter) {
      if (letter.message->taken.load() < letter.number) return false;
      group_.blocks().give_back(letter.offset);
      return true;
    });
  }

  SharedGroup& group_;
  std::vector<std::uint64_t> sent_;  // per rank: messages sent to it
  std::vector<std::uint64_t> read_;  // per rank: all messages up to this one were taken
  std::vector<ExpectedList> expected_;
  std::vector<Letter> letters_;  // sent messages, perhaps not yet read
};

// A tensor in shared memory. A tensor that is elsewhere is copied there for the collective.
struct Shared {
  at::Tensor tensor;
  std::uint64_t offset = 0;
  bool copied = false;
};

struct Pending {
  Collective kind = Collective::none;
  int root = 0;
  Shared own;
  std::function<void()> then = {};  // for an asynchronous barrier
};

// Total seconds in which a rank was late.
class LateTime {
 public:
  void note(bool late) {
    if (late == since_.has_value()) return;
    if (late)
      since_.emplace();
    else
      seconds_ += std::exchange(since_, std::nullopt)->lap();
  }
  double take() { return std::exchange(seconds_, 0); }

 private:
  std::optional<Stopwatch> since_;
  double seconds_ = 0;
};

class SharedMemoryCommunicator final : public Communicator, private SharedMemoryFeatures {
 public:
  explicit SharedMemoryCommunicator(std::unique_ptr<SharedGroup> group)
      : group_(std::move(group)), messages_(*group_) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const char* transport() const override { return "shared memory"; }
  Capabilities capabilities() const override { return {.same_clock = true}; }
  SharedMemoryFeatures* shared_memory() override { return this; }

  at::Tensor allocate(std::int64_t count, at::ScalarType dtype) override {
    return tensor_at(rank(), take_zeros(count, dtype), count, dtype);
  }

  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override {
    count_all_reduce(tensor);
    const std::uint64_t number = begin({Collective::all_reduce, 0, share(tensor)}, tensor);
    advance();
    return finished_by([this, number] { complete("all-reduce", number); });
  }
  void broadcast(const at::Tensor& tensor, int root) override {
    if (rank() == root) count_sent(tensor.nbytes());
    complete("broadcast",
             begin({Collective::broadcast, root, rank() == root ? share(tensor) : Shared{tensor}}, tensor));
  }
  void barrier() override { complete("barrier", begin({Collective::barrier, 0, {}}, {})); }

  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    count_sent(tensor.nbytes());
    return messages_.send(tensor, to, tag);
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    return messages_.receive(tensor, from, tag);
  }
  int receive_from_any(const at::Tensor& tensor, int tag) override {
    const int from = messages_.wait_for_any(tag);
    messages_.receive(tensor, from, tag)->wait();
    return from;
  }

 private:
  at::Tensor allocate_shared(std::int64_t count, at::ScalarType dtype) override {
    const at::Tensor offset = at::zeros({}, at::kLong);
    if (rank() == 0) offset.fill_(static_cast<std::int64_t>(take_zeros(count, dtype)));
    broadcast(offset, 0);
    return tensor_at(0, static_cast<std::uint64_t>(offset.item<std::int64_t>()), count, dtype);
  }
  std::unique_ptr<Work> async_barrier(std::function<void()> then) override {
    const std::uint64_t number = begin({Collective::async_barrier, 0, {}, std::move(then)}, {});
    advance();
    return finished_by([this, number] { do_all_up_to(number); });
  }
  double take_straggler_seconds() override { return late_.take(); }

  std::uint64_t take_zeros(std::int64_t count, at::ScalarType dtype) {
    const auto bytes = static_cast<std::size_t>(count) * c10::elementSize(dtype);
    const std::uint64_t offset = group_->blocks().take(bytes);
    std::memset(group_->data(rank(), offset), 0, bytes);
    return offset;
  }

  // The tensor keeps the memory alive, not the group.
  at::Tensor tensor_at(int owner, std::uint64_t offset, std::int64_t count, at::ScalarType dtype) const {
    return at::from_blob(
        group_->data(owner, offset), {count}, [memory = group_->memory()](void*) {}, dtype);
  }

  Shared share(const at::Tensor& tensor) {
    if (!tensor.is_non_overlapping_and_dense())
      throw InternalError("cannot exchange a tensor that is not dense");
    if (const auto offset = group_->own_offset(tensor.const_data_ptr(), tensor.nbytes()))
      return {tensor, *offset, false};
    Shared shared{tensor, group_->blocks().take(tensor.nbytes()), true};
    std::memcpy(group_->data(rank(), shared.offset), tensor.const_data_ptr(), tensor.nbytes());
    return shared;
  }

  // Stores this rank's contribution and returns the number of the collective.
  std::uint64_t begin(Pending pending, const at::Tensor& tensor) {
    const std::uint64_t number = ++begun_;
    if (number > collectives_under_way) {
      // wait until no rank reads the contribution that is overwritten
      group_->wait("collective", [&] { return missing_in(number - collectives_under_way); });
    }
    group_->contribution(rank(), number) = {
        pending.kind, tensor.defined() ? static_cast<std::int32_t>(tensor.scalar_type()) : 0,
        tensor.defined() ? tensor.numel() : 0, pending.own.offset};
    pending_.emplace(number, std::move(pending));
    group_->begun(rank()).store(number, std::memory_order_release);
    group_->ring();
    return number;
  }

  // A rank that has not done its part of collective `number`. Empty if all have.
  std::optional<int> missing_in(std::uint64_t number) {
    const auto late = advance();
    late_.note(late && done_ < number);
    if (late && done_ < number) return late;
    for (int r = 0; r < size(); ++r)
      if (group_->done(r).load(std::memory_order_acquire) < number) return r;
    return std::nullopt;
  }

  // Does this rank's part of all collectives that every rank has begun, in order. Returns the rank that has
  // not begun the next collective.
  std::optional<int> advance() {
    while (done_ < begun_) {
      for (int r = 0; r < size(); ++r)
        if (group_->begun(r).load(std::memory_order_acquire) <= done_) return r;
      do_part(done_ + 1);
      group_->done(rank()).store(++done_, std::memory_order_release);
      group_->ring();
    }
    return std::nullopt;
  }

  void do_part(std::uint64_t number) {
    const Contribution& own = group_->contribution(rank(), number);
    for (int r = 0; r < size(); ++r)
      if (!group_->contribution(r, number).same_shape(own))
        throw InternalError("ranks " + std::to_string(rank()) + " and " + std::to_string(r) +
                            " exchange different tensors");
    const Pending& pending = pending_.at(number);
    if (own.kind == Collective::all_reduce) add_up_own_slice(number);
    if (own.kind == Collective::async_barrier) pending.then();
    if (own.kind == Collective::broadcast && rank() != pending.root) {
      const Contribution& root = group_->contribution(pending.root, number);
      std::memcpy(pending.own.tensor.mutable_data_ptr(), group_->data(pending.root, root.offset),
                  pending.own.tensor.nbytes());
    }
  }

  // Works in pieces that stay in a core's cache between the sum and the write.
  void add_up_own_slice(std::uint64_t number) {
    constexpr std::int64_t line = 64;
    constexpr std::int64_t piece = 1 << 15;
    const libtorch::WithoutAutograd plain;
    const std::int64_t count = group_->contribution(rank(), number).count;
    const auto edge = [&](int r) { return r == size() ? count : count * r / size() / line * line; };
    for (std::int64_t begin = edge(rank()); begin < edge(rank() + 1); begin += piece) {
      const std::int64_t numbers = std::min(piece, edge(rank() + 1) - begin);
      const at::Tensor sum = numbers_of(0, number, begin, numbers);
      for (int r = 1; r < size(); ++r) sum.add_(numbers_of(r, number, begin, numbers));
      for (int r = 1; r < size(); ++r) numbers_of(r, number, begin, numbers).copy_(sum);
    }
  }

  at::Tensor numbers_of(int r, std::uint64_t number, std::int64_t begin, std::int64_t numbers) const {
    const Contribution& from = group_->contribution(r, number);
    const auto dtype = static_cast<at::ScalarType>(from.dtype);
    const auto start = static_cast<std::uint64_t>(begin) * c10::elementSize(dtype);
    return at::from_blob(group_->data(r, from.offset + start), {numbers}, dtype);
  }

  // Does this rank's part of collective `number`, without waiting for the parts of other ranks.
  void do_all_up_to(std::uint64_t number) {
    group_->wait("asynchronous barrier", [&]() -> std::optional<int> {
      const std::optional<int> late = done_ < number ? advance() : std::nullopt;
      late_.note(done_ < number);
      return done_ < number ? late : std::nullopt;
    });
    pending_.erase(number);
  }

  void complete(const char* operation, std::uint64_t number) {
    group_->wait(operation, [&] { return missing_in(number); });
    const Pending pending = std::move(pending_.extract(number).mapped());
    if (!pending.own.copied) return;
    if (pending.kind == Collective::all_reduce)
      std::memcpy(pending.own.tensor.mutable_data_ptr(), group_->data(rank(), pending.own.offset),
                  pending.own.tensor.nbytes());
    group_->blocks().give_back(pending.own.offset);
  }

  std::unique_ptr<SharedGroup> group_;
  std::uint64_t begun_ = 0;  // collectives
  std::uint64_t done_ = 0;
  std::map<std::uint64_t, Pending> pending_;
  SharedMessages messages_;
  LateTime late_;
};

}  // namespace

std::unique_ptr<Communicator> shared_memory_communicator(const Store& store, const std::string& name,
                                                         const GroupOptions& group) {
  auto shared = SharedGroup::meet(store, name, group);
  if (!shared) return nullptr;
  return std::make_unique<SharedMemoryCommunicator>(std::move(shared));
}

}  // namespace trainyard::runner
