// Synchronous parameter servers: ranks that hold the parameters and the state of the optimizer in equal parts
// (Li et al. 2014). In each step
// - a replica sends each server its part of the gradients, bucket by bucket during the last backward pass,
// - a server adds the gradients of all replicas in their order, and updates its part once,
// - each replica receives the updated parts of all servers.
// This computes what one device computes, with the sums of replicas that exchange gradients themselves.
#pragma once

#include <vector>

#include "experiments/run/run.h"
#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/optimizer/update.h"

namespace trainyard::runner {

// The update of a replica, which only sends and receives, or of a server, which has a step without samples.
// - `parameters` are equal on all ranks, and are moved to one memory. UserError if they have different types.
// - `factors`: as of `make_optimizer`.
// - `ranks` has the replicas, then the servers. It must outlive the update.
Update served_update(const experiments::Optimizer& settings,
                     const std::vector<networks::NamedParameter>& parameters,
                     const std::vector<models::GroupFactors>& factors, Communicator& ranks,
                     const experiments::Strategy& strategy);

}  // namespace trainyard::runner
