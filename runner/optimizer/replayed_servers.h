// The training of asynchronous servers again, in one process and bit by bit, from the logs of the servers
// (experiments/protocol/server_log.h). It follows each log until an event needs another one: a gradient is applied once it
// has been computed, and an update is computed once its parameters have been read.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "experiments/run/run.h"
#include "models/networks/network.h"
#include "runner/optimizer/update.h"

namespace trainyard::runner {

using ServerEvents = std::vector<std::int64_t>;  // of one server in one epoch

// `logs`: those of all servers in the next epoch. Updates are computed in an order that the logs allow. InternalError if
// they allow none.
Update replayed_update(const experiments::Optimizer& settings, const networks::Network& network,
                       const std::vector<models::GroupFactors>& factors,
                       const experiments::Strategy& strategy,
                       std::function<std::vector<ServerEvents>()> logs);

}  // namespace trainyard::runner
