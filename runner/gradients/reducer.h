// Turns the gradients that each rank computed from its part of a batch into the gradients of the whole batch.
// The loss of a rank is (sum over its samples) / (global weight of the step), so gradients are summed, never
// averaged, and a rank without samples adds zeros.
//
// One step:  prepare(); then for each micro-batch backward, with last_backward() before the last of them,
// during which sums are exchanged; finish(); optimizer.step(gradients()).   Without samples: reduce_zeros().
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

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void prepare() = 0;        // forgets the gradients of the last step
  virtual void last_backward() = 0;  // the next backward is the step's last
  virtual void finish() = 0;         // after it: waits until the sums are there
  virtual void
  reduce_zeros() = 0;  // in place of prepare, backward and finish: this rank has no samples in the step
  // What this rank updates with: in the order of the parameters, each in the memory layout of its own, or
  // sparse with each row once. Where replicas share out the work, those of its slices
  // (runner/gradients/sharded_reducer.h).
  virtual const std::vector<at::Tensor>& gradients() const = 0;
  // Each replica has the gradients of its own shards: only all replicas together know the whole gradient.
  virtual bool sharded() const { return false; }
  // Of all parameters, after the step's update. Collective.
  virtual std::vector<at::Tensor> whole_gradients() { return gradients(); }
};

// One rank: the gradients are its own.
std::unique_ptr<Reducer> local_reducer(std::vector<networks::NamedParameter> parameters);

inline constexpr std::int64_t default_bucket_bytes = 1 << 20;

// Several ranks: gradients are gathered in flat buckets, in the reverse order of the parameters, which is
// about the order in which backward yields them; in the step's last backward a bucket is all-reduced as soon
// as it and all before it are full, while backward goes on. A parameter larger than `bucket_bytes` has a
// bucket of its own. `finish` throws InternalError naming a parameter that got no gradient: then the ranks'
// collectives would no longer match. `communicator` must outlive it.
std::unique_ptr<Reducer> bucket_reducer(std::vector<networks::NamedParameter> parameters,
                                        Communicator& communicator,
                                        std::int64_t bucket_bytes = default_bucket_bytes);

// What reducers of several ranks have in common. Parameters lie in buckets, in reverse order, which is about
// the order in which backward yields their gradients; in the step's last backward a bucket leaves as soon as
// it and all before it are full, while backward goes on. So buckets leave in the same order on every rank.

// Indices of parameters, in buckets of at most `bucket_bytes` or of one parameter.
using Buckets = std::vector<std::vector<std::size_t>>;
Buckets cut_into_buckets(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes);

class BucketedReducer : public Reducer {
 public:
  BucketedReducer(std::vector<networks::NamedParameter> parameters, Buckets buckets);
  BucketedReducer(const BucketedReducer&) = delete;
  BucketedReducer& operator=(const BucketedReducer&) = delete;

  void prepare() final;
  void last_backward() final { last_ = true; }
  void finish() final;
  void reduce_zeros() final;

 protected:
  const std::vector<networks::NamedParameter>& parameters() const { return parameters_; }
  const Buckets& buckets() const { return buckets_; }

 private:
  // This rank's gradient of a parameter in this step; only some of its rows, or laid out like the parameter.
  virtual void take(std::size_t parameter, const at::Tensor& gradient) = 0;
  // All gradients of a bucket were taken: what waits until their sums are there.
  virtual std::unique_ptr<Communicator::Work> leave(std::size_t bucket) = 0;

  void watch(std::size_t parameter);
  void arrived(std::size_t parameter, const at::Tensor& gradient);
  std::string without_gradient() const;

  std::vector<networks::NamedParameter> parameters_;
  Buckets buckets_;
  std::vector<std::size_t> bucket_of_;                     // of each parameter
  std::vector<std::size_t> missing_;                       // of each bucket, in this step
  std::vector<std::unique_ptr<Communicator::Work>> left_;  // of the buckets that have left
  std::vector<std::shared_ptr<void>> hooks_;               // that call `arrived`
  bool last_ = false;                                      // the backward under way is the step's last
};

}  // namespace trainyard::runner
