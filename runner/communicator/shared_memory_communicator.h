// A communicator for ranks of one host, over memory that they share: nothing is copied that lies in memory of
// `Communicator::allocate`. In an all-reduce each rank adds up its slice of all ranks' numbers, in the order
// of the ranks, and writes the sum to all: every rank has the same bits, run after run.
#pragma once

#include <memory>
#include <string>

#include "runner/communicator/communicator.h"
#include "runner/communicator/rank_group.h"

namespace trainyard::runner {

// Meets the other ranks through `store`, under the prefix `name`. Null, on every rank, where they cannot
// share memory.
std::unique_ptr<Communicator> shared_memory_communicator(const Store& store, const std::string& name,
                                                         const RankGroup& group);

}  // namespace trainyard::runner
