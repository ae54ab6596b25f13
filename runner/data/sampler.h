// Sampler: the samples of each replica in each step, and the order of the samples in an epoch.
//
// exact: the global batch of step k is order[kB, (k + 1)B) for every mesh.
// - Replica r has the r-th of N contiguous parts. Their sizes differ by at most one, and a part may be empty.
// - Every sample counts once. The last batch of an epoch may be smaller.
//
// distributed: like `torch.utils.data.DistributedSampler` with a mean over the replicas' means.
// - The order is extended from its own beginning until each replica has the same number of samples. Replica r
//   has every N-th sample, starting with the r-th, and B/N samples per step.
// - The repeated samples count twice in training. Evaluation is always exact.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "runner/data/dataset.h"

namespace trainyard::runner {

// A range of the order of an epoch.
struct Part {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Part&) const = default;
};

// Part number `part` of `parts` contiguous parts of `whole`. Sizes differ by at most one, larger parts first.
Part part_of(const Part& whole, std::int64_t part, std::int64_t parts);

enum class Sampling { exact, distributed };
Sampling find_sampling(std::string_view name);  // UserError for an unknown name

// The part of a global batch that a replica trains on in a step.
struct LocalBatch {
  at::Tensor indices;            // sample indices, int64 [part], may be empty
  std::int64_t divisor = 0;      // of the summed loss, before the sum over replicas
  at::Tensor global_batch = {};  // int64 [global batch]: sample indices of all replicas
};

inline constexpr int no_replica = -1;  // a rank without a part of any batch

class Sampler {
 public:
  // `replica` may be `no_replica`. UserError if `distributed` cannot divide the global batch into equal parts.
  Sampler(std::int64_t samples, std::int64_t global_batch, std::int64_t replica, std::int64_t replicas,
          Sampling sampling = Sampling::exact);
  std::int64_t steps() const { return (filled_up_ + global_batch_ - 1) / global_batch_; }  // per epoch
  // Sample indices of this replica in a step. `order` is int64 [sample].
  at::Tensor indices(const at::Tensor& order, std::int64_t step) const;
  at::Tensor indices_of_all(const at::Tensor& order, std::int64_t step) const;  // of all replicas
  LocalBatch local_batch(const Dataset& data, const at::Tensor& order, std::int64_t step) const;

  // The data order of an epoch, equal for every mesh: the term `batches` (docs/record-protocol.md). "HASH steps:HASH":
  // SHA-256 of the sample indices of the global batches, and of one number per step that does not depend on their
  // order within it.
  std::string batches_hash(const at::Tensor& order) const;

  // For exact sampling.
  Part global_batch(std::int64_t step) const;  // of all replicas
  Part part(std::int64_t step) const {         // of this replica
    return part_of(global_batch(step), replica_, replicas_);
  }

 private:
  at::Tensor own_part(const at::Tensor& batch, std::int64_t step) const;

  std::int64_t samples_;
  std::int64_t filled_up_;  // number of samples, including repeated ones
  std::int64_t global_batch_;
  std::int64_t replica_;
  std::int64_t replicas_;
  Sampling sampling_;
};

// The order of the samples in an epoch: a pure function of seed and epoch, the same for every mesh. Global
// batch k is the range [kB, (k + 1)B) of the order.

// perm(seed, epoch): int64 [samples] (random stream "order/seed/epoch").
at::Tensor epoch_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch);

// The order for sequences with length `keys`, int64 [sample]. A global batch contains samples of similar
// length, which keeps the padding small.
// 1. Each window of 100 global batches of perm(seed, epoch) is sorted by length and cut into global batches.
// 2. The global batches are shuffled over the epoch, and the samples are shuffled within their batch.
// The last, smaller batch stays random.
at::Tensor epoch_order(const at::Tensor& keys, std::int64_t global_batch, std::uint64_t seed,
                       std::int64_t epoch);

// The second order if `data` has length keys, else the first.
// With `steps` per epoch, it is the epoch's part of a stream: the orders of pass 1, pass 2, … one after the other,
// cut into epochs of `steps` global batches. So each batch is full, and one may have the end of a pass and the
// beginning of the next.
at::Tensor epoch_order(const Dataset& data, std::int64_t global_batch, std::uint64_t seed, std::int64_t epoch,
                       std::int64_t steps = 0);
// Its number of samples.
std::int64_t epoch_samples(const Dataset& data, std::int64_t global_batch, std::int64_t steps);

// The order of an evaluation, int64 [sample]: not random, but sorted by length to keep the padding small.
at::Tensor evaluation_order(const Dataset& data);

}  // namespace trainyard::runner
