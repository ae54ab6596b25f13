// Sharded optimizer for replicas that share memory. The parameters and the optimizer's state are stored once,
// and each replica updates its shards. Work and memory of a step do not grow with the number of replicas.
#pragma once

#include <memory>
#include <vector>

#include "experiments/run/run.h"
#include "runner/communicator/communicator.h"
#include "runner/gradients/sharded_reducer.h"
#include "runner/optimizer/optimizer.h"

namespace trainyard::runner {

// True if `parameters` can be moved to shared memory: they are dense, not empty, on the CPU and of one type.
bool can_share(const std::vector<at::Tensor>& parameters);

// The optimizer, or null if the replicas do not share memory.
// - This function and each `step` are collective over `replicas`, which must outlive the optimizer.
// - All replicas have equal `parameters`, which are moved to shared memory.
// - `factors`: as of `make_optimizer`.
// - `step` takes the reduced gradients of this replica's shards, in the order of `layout`. No replica may
//   read the parameters during `step`.
std::unique_ptr<Optimizer> sharded_optimizer(const experiments::Optimizer& settings,
                                             const std::vector<at::Tensor>& parameters,
                                             const ShardLayout& layout, Communicator& replicas,
                                             const std::vector<models::GroupFactors>& factors = {});

}  // namespace trainyard::runner
