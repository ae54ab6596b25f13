// What ranks say to one another: the seam between training and the transport. Every rank of a communicator
// calls the same collective functions in the same order; sends and receives are between two ranks, matched by
// tag and, for one tag, in order. `single_communicator` is a group of one, `shared_memory_communicator` one
// of ranks on one host, `gloo_communicator` one over TCP, `nccl_communicator` one of GPUs; `host_copies` has
// tensors of a GPU travel by one of the others. Each takes tensors in host memory too, of whatever device.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace trainyard::runner {

// A peer has gone or did not answer in time. The group is broken: flush the records and leave, without any
// further collective call.
class CommunicationError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Communicator {
 public:
  // Something under way; its tensor must not be touched before `wait` returns. For NCCL that means: by the
  // host, or by what comes later on the stream that was current in `wait`, which returns at once.
  class Work {
   public:
    virtual ~Work() = default;
    virtual void wait() = 0;
  };

  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* transport() const = 0;         // "gloo"; for the records
  virtual bool same_clock() const { return false; }  // all ranks read the same steady clock
  // Where `allocate` takes memory, and where tensors are that it exchanges fastest.
  virtual at::Device device() const { return at::Device(at::DeviceType::CPU); }
  // Messages of tensors on `device` from one rank to another meet their receives in the order of both,
  // whatever their tags, and the host does not learn when one has come: the receiver must know what they look
  // like. Those of tensors in host memory meet by tag even so.
  virtual bool in_order() const { return false; }
  // Zeros [count] on `device`, in memory from where `all_reduce` is fastest. They outlive the communicator.
  virtual at::Tensor allocate(std::int64_t count, at::ScalarType dtype);
  // The same memory for all ranks, zeros [count]: what one writes, all see. Undefined where they share none.
  // Collective; it outlives the communicator.
  virtual at::Tensor allocate_shared(std::int64_t /*count*/, at::ScalarType /*dtype*/) { return {}; }
  // Replaces `tensor` (dense) by the sum over all ranks.
  virtual std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) = 0;
  // Sends `tensor` (contiguous, not empty), receives into it: both return at once. There may be any number of
  // them under way, also beside collective calls. A tag is not negative.
  virtual std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) = 0;
  virtual std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) = 0;
  // Replaces `tensor` by that of rank `root`.
  virtual void broadcast(const at::Tensor& tensor, int root) = 0;
  // Has `then` called once every rank has called `meet`: here, in a later call of this communicator, at the
  // latest in `wait`, which does not wait for that of others. What they wrote before, `then` sees in shared
  // memory; it calls no communicator. A collective function like the others.
  virtual std::unique_ptr<Work> meet(std::function<void()> then);
  // Seconds since the last call in which this rank waited in collective functions for one that had not called
  // them; nothing where that is not measured.
  virtual std::optional<double> take_straggler_seconds() { return std::nullopt; }
  // Returns once every rank has called it. Work of a GPU that was launched before may still be under way.
  virtual void barrier() = 0;
  // The same ranks meet anew where a call of a device's library failed that was to be captured, after which
  // its group may not be used again (NCCL's user guide, «Error handling»). No work is under way. Collective.
  virtual void renew() {}
};

// Σ over all ranks of a number. Collective.
double sum_over(Communicator& communicator, double own);

// Whether all ranks say so. Collective, through host memory.
bool holds_on_all(Communicator& communicator, bool own);

std::unique_ptr<Communicator> single_communicator();

// What ranks need to meet as the ranks of a communicator, whatever its transport.

// How long a rank waits for its peers before it gives up.
inline constexpr std::chrono::milliseconds communication_timeout = std::chrono::minutes(5);

using Store = c10::intrusive_ptr<c10d::Store>;

struct GroupOptions {
  int rank = 0;
  int size = 1;
  bool one_host = true;  // all ranks are on this host
  std::chrono::milliseconds timeout = communication_timeout;
  bool chain = false;  // each exchanges messages with the rank before and the rank after it
};

// The sum of a tensor over all replicas as a step of autograd, for batch normalisation with synchronised
// statistics.

// Σ over ranks of `tensor` (any shape, equal on all). Its gradient is the sum of all ranks' gradients, since
// every rank's loss depends on every rank's tensor. Collective, and again in backward.
at::Tensor sum_over_ranks(const at::Tensor& tensor, Communicator& communicator);

// Tensors of a GPU by a communicator that knows only host memory: where NCCL cannot be had, or ranks share a
// GPU. Each is copied to the host and back, and the host waits for it; good for development and tests, and a
// baseline for what NCCL saves.

// `through` with tensors on `device` copied; all others it takes as they are. `allocate` is on `device`, and
// no memory is shared.
std::unique_ptr<Communicator> host_copies(std::unique_ptr<Communicator> through, at::Device device);

}  // namespace trainyard::runner
