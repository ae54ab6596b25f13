// Asynchronous parameter servers (Li et al. 2014; Ho et al. 2013 for the bound).
// - Update u of an epoch is its u-th whole global batch. Server 0 gives it to the next replica that asks.
// - The replica reads the parameters of all servers, computes the gradient and sends it. Each server applies it at once.
// - Staleness: how many other updates a server has applied between. Batch, learning rate and number of updates are
//   those of one device.
// - With a bound s, a replica gets an update only while it has finished at most s more than the slowest one.
// - At the end of an epoch all replicas read the parameters after its last update.
#pragma once

#include <vector>

#include "experiments/run/run.h"
#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/optimizer/update.h"

namespace trainyard::runner {

// As of `served_update`.
Update async_update(const experiments::Optimizer& settings,
                    const std::vector<networks::NamedParameter>& parameters,
                    const std::vector<models::GroupFactors>& factors, Communicator& ranks,
                    const experiments::Strategy& strategy);

}  // namespace trainyard::runner
