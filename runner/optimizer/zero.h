// ZeRO for replicas that exchange messages (Rajbhandari et al. 2020; with "parameters" as FSDP): each replica keeps
// - "optimizer": the state of the optimizer of its slices, and whole gradients only while it accumulates them,
// - "gradients": also gradients of its slices only, except in the unit whose gradients are in flight,
// - "parameters": also its slices of the parameters only. Those of a unit are gathered before its forward pass and
//   again before its backward pass, and freed after each.
// A slice of gradients goes straight to its owner, who adds those of all replicas in their order: the bits are those of
// replicas that share memory. With several turns of gradient accumulation each turn is added up, except for "optimizer".
#pragma once

#include <string>
#include <vector>

#include "experiments/run/run.h"
#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/optimizer/update.h"

namespace trainyard::runner {

// - The parameters of `network` are equal on all replicas, and are moved to the memory of units
//   (runner/optimizer/unit_slices.h). UserError if they have different types.
// - `factors`: as of `make_optimizer`. `turns`: backward passes of a step, on a replica that has samples for all.
// - A replica with fewer passes takes part in the exchanges of the others, at the end of its step.
// - `replicas` must outlive the update.
Update zero_update(const experiments::Optimizer& settings, const networks::Network& network,
                   const std::vector<models::GroupFactors>& factors, const std::string& sharding, int turns,
                   Communicator& replicas);

}  // namespace trainyard::runner
