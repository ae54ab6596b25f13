// What reducers of several ranks have in common. Parameters lie in buckets, in reverse order, which is about
// the order in which backward yields their gradients; in the step's last backward a bucket leaves as soon as
// it and all before it are full, while backward goes on. So buckets leave in the same order on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/autograd/variable.h>

#include "runner/gradients/reducer.h"

namespace trainyard::runner {

// Indices of parameters, in buckets of at most `bucket_bytes` or of one parameter.
using Buckets = std::vector<std::vector<std::size_t>>;
Buckets cut_into_buckets(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes);

class BucketedReducer : public Reducer {
 public:
  BucketedReducer(std::vector<networks::NamedParameter> parameters, Buckets buckets);
  ~BucketedReducer() override;
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

  struct Hook {
    decltype(torch::autograd::impl::grad_accumulator({})) accumulator;  // alive as long as its hook is wanted
    std::uintptr_t key;
  };

  void watch(std::size_t parameter);
  void arrived(std::size_t parameter, const at::Tensor& gradient);
  std::string without_gradient() const;

  std::vector<networks::NamedParameter> parameters_;
  Buckets buckets_;
  std::vector<std::size_t> bucket_of_;                     // of each parameter
  std::vector<std::size_t> missing_;                       // of each bucket, in this step
  std::vector<std::unique_ptr<Communicator::Work>> left_;  // of the buckets that have left
  std::vector<Hook> hooks_;
  bool last_ = false;  // the backward under way is the step's last
};

}  // namespace trainyard::runner
