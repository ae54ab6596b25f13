// The optimizer of replicas: where their memory is one, parameters and what is remembered of them lie there
// once, and each replica updates its slices. The work of a step and its memory do not grow with the replicas.
#pragma once

#include <memory>
#include <vector>

#include "experiments/run/run.h"
#include "runner/communicator/communicator.h"
#include "runner/gradients/sharded_reducer.h"
#include "runner/optimizer/optimizer.h"

namespace trainyard::runner {

// Whether such `parameters` can lie in memory that replicas share.
bool can_share(const std::vector<at::Tensor>& parameters);

// Null if the replicas share no memory. Collective over `replicas`, which must outlive it and have equal
// `parameters`; so is each `step`, of which it takes the gradients of this replica's slices of `layout`, in
// their order, summed: then no replica reads parameters any more. The parameters move to the shared memory.
std::unique_ptr<Optimizer> sharded_optimizer(const experiments::Optimizer& settings,
                                             const std::vector<at::Tensor>& parameters,
                                             const ShardLayout& layout, Communicator& replicas);

}  // namespace trainyard::runner
