// Communicator: collectives and messages between ranks, independent of the transport.
// - Every rank of a communicator calls the same collective functions in the same order.
// - A message goes from one rank to another. Messages match by tag, and in order if they have the same tag.
// - Every communicator also accepts tensors in host memory.
//
// | made by                     | connects                                                  |
// |-----------------------------|-----------------------------------------------------------|
// | single_communicator         | one rank                                                  |
// | shared_memory_communicator  | ranks on one host                                         |
// | gloo_communicator           | ranks over TCP                                            |
// | nccl_communicator           | ranks with GPUs                                           |
// | host_copies                 | ranks with GPUs, by copies through one of the first three |
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace trainyard::runner {

// A peer has ended or did not answer in time. The group is broken: flush the records and exit, without
// another collective call.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Guarantees of a transport beyond the interface.
struct Capabilities {
  bool same_clock = false;  // all ranks read the same steady clock
  // Messages with tensors on the communicator's device match their receives by order, not by tag. The host
  // cannot see when such a message has arrived, so the receiver must know its layout in advance. Messages
  // with tensors in host memory still match by tag.
  bool ordered_messages = false;
};

class SharedMemoryFeatures;

class Communicator {
 public:
  // An asynchronous operation. Its tensor must not be used before `wait` returns. NCCL's `wait` returns at
  // once: later work on the stream that is current in `wait` may use the tensor, but the host may not.
  class Work {
   public:
    virtual ~Work() = default;
    virtual void wait() = 0;
  };

  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* transport() const = 0;  // for the records: "gloo"
  virtual Capabilities capabilities() const { return {}; }
  // Null if the ranks do not share memory.
  virtual SharedMemoryFeatures* shared_memory() { return nullptr; }
  // The device that `allocate` uses. Tensors on it are exchanged fastest.
  virtual at::Device device() const { return at::Device(at::DeviceType::CPU); }
  // Zeros [count] on `device`, in memory that `all_reduce` can use without a copy. They may outlive the
  // communicator.
  virtual at::Tensor allocate(std::int64_t count, at::ScalarType dtype);
  // Replaces the dense `tensor` by the sum over all ranks.
  virtual std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) = 0;
  // Send a tensor, and receive into a tensor. It is contiguous and not empty, and the tag is not negative.
  // Both return at once. Any number of messages may be in flight, also during collectives.
  virtual std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) = 0;
  virtual std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) = 0;
  // Receives the next message with this tag from any other rank into `tensor`, which is in host memory. Returns the sender.
  // InternalError if the transport has only neighbours.
  virtual int receive_from_any(const at::Tensor& tensor, int tag);
  // Replaces `tensor` by the tensor of rank `root`.
  virtual void broadcast(const at::Tensor& tensor, int root) = 0;
  // Returns once every rank has called it. GPU work that was launched before may still be running.
  virtual void barrier() = 0;
  // Replaces the group by a new one with the same ranks. Collective. No operation may be in flight.
  // Needed after a failed capture: the old group must not be used again (NCCL user guide, "Error handling").
  virtual void renew() {}
  // Bytes of tensors that this rank has sent since the last call. An all-reduce counts as in a ring: 2 (n - 1) / n of the
  // tensor on n ranks.
  virtual std::int64_t take_sent_bytes() { return std::exchange(sent_bytes_, 0); }
  // Also counts what a rank writes to shared memory for others.
  void count_sent(std::size_t bytes) { sent_bytes_ += static_cast<std::int64_t>(bytes); }

 protected:
  void count_all_reduce(const at::Tensor& tensor) {
    const auto ranks = static_cast<std::size_t>(size());
    count_sent(2 * tensor.nbytes() * (ranks - 1) / ranks);
  }

 private:
  std::int64_t sent_bytes_ = 0;
};

// Work that calls `finish` in `wait`.
template <class Finish>
std::unique_ptr<Communicator::Work> finished_by(Finish finish) {
  class FinishedBy final : public Communicator::Work {
   public:
    explicit FinishedBy(Finish call) : call_(std::move(call)) {}
    void wait() override { call_(); }

   private:
    Finish call_;
  };
  return std::make_unique<FinishedBy>(std::move(finish));
}

// More functions of ranks that share memory. All functions but the last are collective.
class SharedMemoryFeatures {
 public:
  // Zeros [count] in memory that all ranks read and write. It may outlive the communicator.
  virtual at::Tensor allocate_shared(std::int64_t count, at::ScalarType dtype) = 0;
  // Asynchronous barrier: calls `then` once every rank has called this function.
  // - `then` runs in this call, in a later call of the communicator, or at the latest in `wait`.
  // - `then` sees everything that the ranks wrote to shared memory before. It must not call a communicator.
  // - `wait` does not wait for the `then` of other ranks.
  virtual std::unique_ptr<Communicator::Work> async_barrier(std::function<void()> then) = 0;
  // See the function with the same name below.
  virtual double take_straggler_seconds() = 0;

 protected:
  ~SharedMemoryFeatures() = default;
};

// Seconds that this rank has waited in collectives for a rank that had not called them, since the last call.
// Empty if the transport does not measure them.
std::optional<double> take_straggler_seconds(Communicator& communicator);

// Sum of a number over all ranks. Collective.
double sum_over(Communicator& communicator, double own);

// True if `own` is true on all ranks. Collective, through host memory.
bool holds_on_all(Communicator& communicator, bool own);

std::unique_ptr<Communicator> single_communicator();

// A rank waits this long for its peers, then it fails.
inline constexpr std::chrono::milliseconds communication_timeout = std::chrono::minutes(5);

using Store = c10::intrusive_ptr<c10d::Store>;

struct GroupOptions {
  int rank = 0;
  int size = 1;
  bool one_host = true;  // all ranks are on this host
  std::chrono::milliseconds timeout = communication_timeout;
  bool chain = false;  // each rank exchanges messages with the previous and the next rank
};

// Sum over ranks of `tensor`, for synchronised batch normalisation. The shape is the same on all ranks.
// The gradient is the sum of all ranks' gradients, because each rank's loss depends on all tensors.
// Collective, in forward and in backward.
at::Tensor sum_over_ranks(const at::Tensor& tensor, Communicator& communicator);

// The halves of it, for layers that are split over ranks. The rest of the network and the loss are the same on all ranks.
// - The sum; its gradient is passed on.
at::Tensor sum_of_parts(const at::Tensor& tensor, Communicator& communicator);
// - The tensor; its gradient is summed. Collective in backward only.
at::Tensor copy_to_parts(const at::Tensor& tensor, Communicator& communicator);

// Exchange of tensors on `device` through host memory, for ranks without NCCL or on the same GPU.
// - Each tensor on `device` is copied to the host, exchanged by `through` and copied back. The host waits.
// - All other tensors are passed to `through` unchanged.
// - `allocate` is on `device`, and the ranks do not share memory.
std::unique_ptr<Communicator> host_copies(std::unique_ptr<Communicator> through, at::Device device);

}  // namespace trainyard::runner
