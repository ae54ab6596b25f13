// Communicator: how ranks exchange tensors, the interface between training and the transports. Every rank of
// a communicator calls the same collective functions in the same order. Messages are between two ranks,
// matched by tag and, for one tag, in order.
//
// | made by                     | ranks                                                    |
// |-----------------------------|----------------------------------------------------------|
// | single_communicator         | one                                                      |
// | shared_memory_communicator  | of one host                                              |
// | gloo_communicator           | over TCP                                                 |
// | nccl_communicator           | GPUs                                                     |
// | host_copies                 | GPUs, whose tensors travel by one of the first three     |
//
// Each takes tensors in host memory too, whatever its device.
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

// What a transport promises beyond the interface.
struct Capabilities {
  bool same_clock = false;  // all ranks read the same steady clock
  // Messages of tensors on the communicator's device match their receives by order alone, whatever their
  // tags. The host does not learn when one has come, so the receiver must know its layout. Messages of
  // tensors in host memory match by tag all the same.
  bool ordered_messages = false;
};

class SharedMemoryFeatures;

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
  virtual const char* transport() const = 0;  // "gloo"; for the records
  virtual Capabilities capabilities() const { return {}; }
  // Null if the ranks share no memory.
  virtual SharedMemoryFeatures* shared_memory() { return nullptr; }
  // The device of `allocate` and of the tensors that are exchanged fastest.
  virtual at::Device device() const { return at::Device(at::DeviceType::CPU); }
  // Zeros [count] on `device`, in memory from which `all_reduce` is fastest. They outlive the communicator.
  virtual at::Tensor allocate(std::int64_t count, at::ScalarType dtype);
  // Replaces `tensor` (dense) by the sum over all ranks.
  virtual std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) = 0;
  // Sends `tensor` (contiguous, not empty), receives into it: both return at once. Any number of them may be
  // under way, also beside collective calls. A tag is not negative.
  virtual std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) = 0;
  virtual std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) = 0;
  // Replaces `tensor` by that of rank `root`.
  virtual void broadcast(const at::Tensor& tensor, int root) = 0;
  // Returns once every rank has called it. Work of a GPU that was launched before may still be under way.
  virtual void barrier() = 0;
  // Replaces the group by a new one of the same ranks. For use after a failed capture: the old group must not
  // be used again (NCCL's user guide, "Error handling"). No work is under way. Collective.
  virtual void renew() {}
};

// What ranks that share memory can do besides. All functions but the last are collective.
class SharedMemoryFeatures {
 public:
  // The same memory for all ranks, zeros [count]: all see what one writes. It outlives the communicator.
  virtual at::Tensor allocate_shared(std::int64_t count, at::ScalarType dtype) = 0;
  // Calls `then` once every rank has called this function: here, in a later call of the communicator, or at
  // the latest in `wait`, which does not wait for the `then` of others. `then` sees what they wrote to shared
  // memory before, and calls no communicator.
  virtual std::unique_ptr<Communicator::Work> async_barrier(std::function<void()> then) = 0;
  // As the function of this name below.
  virtual double take_straggler_seconds() = 0;

 protected:
  ~SharedMemoryFeatures() = default;
};

// Seconds since the last call in which this rank waited in collective functions for one that had not called
// them. Empty if the transport does not measure that.
std::optional<double> take_straggler_seconds(Communicator& communicator);

// Σ over all ranks of a number. Collective.
double sum_over(Communicator& communicator, double own);

// Whether `own` is true on all ranks. Collective, through host memory.
bool holds_on_all(Communicator& communicator, bool own);

std::unique_ptr<Communicator> single_communicator();

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

// Σ over ranks of `tensor` (any shape, equal on all), for batch normalisation with synchronised statistics.
// Its gradient is the sum of all ranks' gradients, since every rank's loss depends on every rank's tensor.
// Collective, and again in backward.
at::Tensor sum_over_ranks(const at::Tensor& tensor, Communicator& communicator);

// Tensors on `device` by `through`, which knows only host memory: if there is
// no NCCL, or ranks share a GPU. Each tensor is copied to the host and back, and the host waits for it. All
// other tensors go to `through` as they are. `allocate` is on `device`, and no memory is shared.
std::unique_ptr<Communicator> host_copies(std::unique_ptr<Communicator> through, at::Device device);

}  // namespace trainyard::runner
