// Which samples a replica takes of each step.
//
// exact: the global batch of step k is order[kB, (k + 1)B) under every mesh, and replica r has the r-th of N
// contiguous parts of it, whose sizes differ by at most one. Every sample counts once; the last batch of an
// epoch is as small as it comes, and a part may be empty.
//
// distributed: as `torch.utils.data.DistributedSampler` and a mean of the replicas' means do it. The order is
// filled up from its own beginning to equally many samples a replica, of which replica r has each N-th from
// the r-th on, B/N a step. The samples that fill up count twice in training; evaluation is always exact.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "runner/data/dataset.h"

namespace trainyard::runner {

// A run of places in the order of an epoch.
struct Part {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Part&) const = default;
};

// `part` of `parts` of `whole`: contiguous, in order, sizes differ by at most one, the larger ones first.
Part part_of(const Part& whole, std::int64_t part, std::int64_t parts);

enum class Sampling { exact, distributed };
Sampling find_sampling(std::string_view name);  // UserError for an unknown one, with those that exist

// The part of a global batch that a replica trains on in a step.
struct LocalBatch {
  at::Tensor places;             // int64 [part], may be empty
  std::int64_t divisor = 0;      // what its summed loss is divided by before the sum over replicas
  at::Tensor global_batch = {};  // int64 [global batch]: the places of all replicas
};

class Sampler {
 public:
  // UserError where `distributed` cannot divide the global batch into equal parts.
  Sampler(std::int64_t samples, std::int64_t global_batch, std::int64_t replica, std::int64_t replicas,
          Sampling sampling = Sampling::exact);
  std::int64_t steps() const;                                           // of an epoch
  at::Tensor places(const at::Tensor& order, std::int64_t step) const;  // of `order`, int64 [sample]
  LocalBatch local_batch(const Dataset& data, const at::Tensor& order, std::int64_t step) const;

  // SHA-256 of the places of all steps of an epoch as little-endian 64-bit integers, step by step, each
  // global batch before it is divided: equal under every mesh, and what the term `batches` states.
  std::string batches_hash(const at::Tensor& order) const;

  // Of an exact one.
  Part global_batch(std::int64_t step) const;  // of all replicas
  Part part(std::int64_t step) const;          // of this one

 private:
  at::Tensor places_of_all(const at::Tensor& order, std::int64_t step) const;
  at::Tensor own_part(const at::Tensor& batch, std::int64_t step) const;  // of the places of all

  std::int64_t samples_;
  std::int64_t filled_up_;  // samples, those that count twice included
  std::int64_t global_batch_;
  std::int64_t replica_;
  std::int64_t replicas_;
  Sampling sampling_;
};

// The order in which an epoch takes the samples: a pure function of seed and epoch, the same under every
// mesh. Global batch k is places [kB, (k + 1)B) of it.

// perm(seed, epoch): int64 [samples] (stream "order/seed/epoch").
at::Tensor epoch_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch);

// The same for sequences by their length `keys`, int64 [sample], so that a global batch holds samples of
// about one length and little of it is padding: of perm(seed, epoch), runs of 100 global batches are sorted
// by length and cut into global batches, which are then shuffled over the epoch, as are the samples inside
// each. The last, smaller batch stays a random one.
at::Tensor epoch_order(const at::Tensor& keys, std::int64_t global_batch, std::uint64_t seed,
                       std::int64_t epoch);

// That of the two that fits `data`.
at::Tensor epoch_order(const Dataset& data, std::int64_t global_batch, std::uint64_t seed,
                       std::int64_t epoch);

// The order of an evaluation, where none is random: by length, so that little is padding; int64 [sample].
at::Tensor evaluation_order(const Dataset& data);

}  // namespace trainyard::runner
