// The reducer of replicas that share memory: each sums the gradients of its own slices, and those only. A
// gradient is written once for the others, without the part that this replica sums itself, and read once; an
// all-reduce also writes the sums back to all.
#pragma once

#include <memory>
#include <vector>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/gradients/reducer.h"
#include "runner/gradients/slices.h"

namespace trainyard::runner {

// Null where the replicas share no memory; collective. `gradients` are those of this replica's slices of
// `layout`. Between `finish` and the next step's backward all replicas must have met, as those of a shared
// optimizer do after their update. `replicas` must outlive it.
std::unique_ptr<Reducer> sliced_reducer(const std::vector<networks::NamedParameter>& parameters,
                                        const SliceLayout& layout, Communicator& replicas);

}  // namespace trainyard::runner
