// Shared-memory communicator for ranks on one host.
// - Tensors in memory of `Communicator::allocate` are not copied.
// - All-reduce: each rank sums its own shard of all ranks' tensors and writes the sum to all ranks. The order
//   of the ranks is fixed, so every rank has the same bits in every run.
#pragma once

#include <memory>
#include <string>

#include "runner/communicator/communicator.h"

namespace trainyard::runner {

// Rendezvous through `store` under the prefix `name`. Null on all ranks if they cannot share memory.
std::unique_ptr<Communicator> shared_memory_communicator(const Store& store, const std::string& name,
                                                         const GroupOptions& group);

}  // namespace trainyard::runner
