// Parity check of asynchronous servers: two updates per replica are trained, and replayed in one process from the logs
// of the servers (runner/optimizer/replayed_servers.h). Reports judge the differences like those of the parity check.
#pragma once

#include <functional>

#include "runner/data/dataset.h"
#include "runner/parity/parity_check.h"
#include "runner/trainer/mesh.h"
#include "runner/trainer/resolved_run.h"

namespace trainyard::runner {

// Trains a copy of the run with the training data `train`, and calls `done` once. In place of a gradient it has the
// change of a layer. Collective over all ranks.
void probe_replay(const ResolvedRun& resolved, const models::InputShape& input, const Dataset& train,
                  const Connections& ranks, const std::function<void(const ProbedStep&)>& done);

}  // namespace trainyard::runner
