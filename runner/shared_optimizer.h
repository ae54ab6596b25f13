// The optimizer of replicas: where their memory is one, parameters and what is remembered of them lie there
// once, and each replica updates its part. The work of a step and its memory do not grow with the replicas.
#pragma once

#include <memory>
#include <vector>

#include "experiments/run.h"
#include "runner/communicator.h"
#include "runner/optimizer.h"

namespace trainyard::runner {

// Collective over `replicas`, which must outlive it and have equal `parameters`; so is each `step`, whose
// gradients are the same on all, and summed: then no replica reads parameters any more. The parameters move
// to the shared memory. A plain optimizer where the replicas share none.
std::unique_ptr<Optimizer> shared_optimizer(const experiments::Optimizer& settings,
                                            const std::vector<at::Tensor>& parameters,
                                            Communicator& replicas);

}  // namespace trainyard::runner
