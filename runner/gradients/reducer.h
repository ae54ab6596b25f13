// Reducer: sums the gradients of all ranks to the gradients of the whole batch. The loss of a rank is
// (sum over its samples) / (global weight of the step). So gradients are summed, never averaged, and a rank
// without samples adds zeros.
//
// One step:
//   prepare(); backward of each micro-batch, with last_backward() before the last one, which communicates;
//   finish(); optimizer.step(gradients()).
// A rank without samples calls reduce_zeros() instead of prepare, backward and finish.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// The memory of a reducer, besides the gradients of the parameters themselves.
struct HeldTensors {
  std::vector<at::Tensor> gradients = {};
  std::vector<at::Tensor> messages = {};  // what is sent to other ranks, or received from them
  int sharing = 1;  // replicas that have the messages, the parameters and the state together
  std::vector<at::Tensor> parameters = {};  // of a server: its part, which is also in its checkpoint
};

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void prepare() = 0;        // resets the gradients
  virtual void last_backward() = 0;  // the next backward is the last one of the step
  virtual void finish() = 0;         // after the last backward: waits for the sums
  virtual void reduce_zeros() = 0;   // a step without samples on this rank
  // Reduced gradients in the order of the parameters. Each has the memory layout of its parameter, or is
  // sparse and coalesced. If `sharded`, the gradients of this replica's shards
  // (runner/gradients/sharded_reducer.h).
  virtual const std::vector<at::Tensor>& gradients() const = 0;
  // The index of the parameter to which a gradient belongs.
  virtual std::size_t parameter_of(std::size_t gradient) const { return gradient; }
  // True if each replica has only the gradients of its own shards.
  virtual bool sharded() const { return false; }
  // Complete gradients of all parameters, after the step's update. On a server they are empty tensors. Collective.
  virtual std::vector<at::Tensor> whole_gradients() { return gradients(); }
  virtual HeldTensors held() const { return {gradients()}; }
};

// Reducer for one rank.
std::unique_ptr<Reducer> local_reducer(std::vector<networks::NamedParameter> parameters);

inline constexpr std::int64_t default_bucket_bytes = 1 << 20;

// Reducer for several ranks: all-reduces flat buckets of gradients.
// - A parameter larger than `bucket_bytes` has its own bucket.
// - `finish` throws InternalError with the name of a parameter without a gradient, because then the ranks'
//   collectives would no longer match.
// - `communicator` must outlive the reducer.
std::unique_ptr<Reducer> bucket_reducer(std::vector<networks::NamedParameter> parameters,
                                        Communicator& communicator,
                                        std::int64_t bucket_bytes = default_bucket_bytes);

// Indices of parameters, in buckets of at most `bucket_bytes` or of one parameter. The order of the
// parameters is reversed: backward computes their gradients in about this order.
using Buckets = std::vector<std::vector<std::size_t>>;
Buckets cut_into_buckets(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes);

// Base of the reducers for several ranks. During the step's last backward, a bucket is reduced as soon as it
// and all buckets before it are full. So all ranks reduce the buckets in the same order.
class BucketedReducer : public Reducer {
 public:
  // `turns`: a step has so many backward passes, and each one is reduced. 0: only the last one is.
  BucketedReducer(std::vector<networks::NamedParameter> parameters, Buckets buckets, int turns = 0);
  BucketedReducer(const BucketedReducer&) = delete;
  BucketedReducer& operator=(const BucketedReducer&) = delete;

  void prepare() final;
  void last_backward() final { last_ = true; }
  void finish() final;
  void reduce_zeros() final;

 protected:
  const std::vector<networks::NamedParameter>& parameters() const { return parameters_; }
  const Buckets& buckets() const { return buckets_; }
  bool first_turn() const { return done_ == 0; }

 private:
  // Stores this rank's gradient of a parameter. It is sparse, or has the layout of the parameter.
  virtual void take(std::size_t parameter, const at::Tensor& gradient) = 0;
  // Starts to reduce a bucket after all its gradients were taken.
  virtual std::unique_ptr<Communicator::Work> start_reduction(std::size_t bucket) = 0;
  virtual void drop_sums() {}  // of the step before
  // A rank without samples takes part in what the other ranks do in their forward pass.
  virtual void forward_of_zeros() {}

  void begin_turn();
  void add_zeros();
  void wait();
  void watch(std::size_t parameter);
  void arrived(std::size_t parameter, const at::Tensor& gradient);
  std::string without_gradient() const;

  std::vector<networks::NamedParameter> parameters_;
  Buckets buckets_;
  std::vector<std::size_t> bucket_of_;                           // per parameter
  std::vector<std::size_t> missing_;                             // per bucket: gradients missing in this step
  std::vector<std::unique_ptr<Communicator::Work>> reductions_;  // per bucket whose reduction has started
  std::vector<std::shared_ptr<void>> hooks_;                     // call `arrived`
  bool last_ = false;                                            // this backward is the last one of the step
  int turns_;
  int done_ = 0;  // turns that were reduced in this step
};

}  // namespace trainyard::runner
