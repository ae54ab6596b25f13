// The order in which an epoch takes the samples: a pure function of seed and epoch, the same under every
// mesh. Global batch k is places [kB, (k + 1)B) of it.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "runner/data/split_data.h"

namespace trainyard::runner {

// perm(seed, epoch): int64 [samples] (stream "order/seed/epoch").
at::Tensor epoch_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch);

// The same for sequences by their length `keys`, int64 [sample], so that a global batch holds samples of
// about one length and little of it is padding: of perm(seed, epoch), runs of 100 global batches are sorted
// by length and cut into global batches, which are then shuffled over the epoch, as are the samples inside
// each. The last, smaller batch stays a random one.
at::Tensor epoch_order(const at::Tensor& keys, std::int64_t global_batch, std::uint64_t seed,
                       std::int64_t epoch);

// That of the two that fits `data`.
at::Tensor epoch_order(const SplitData& data, std::int64_t global_batch, std::uint64_t seed,
                       std::int64_t epoch);

// The order of an evaluation, where none is random: by length, so that little is padding; int64 [sample].
at::Tensor evaluation_order(const SplitData& data);

}  // namespace trainyard::runner
