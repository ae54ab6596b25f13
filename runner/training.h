// The training of one rank from its launch file to its last record: Algorithm 1 of the published study, step
// by step.
#pragma once

#include "experiments/launch.h"
#include "runner/environment.h"
#include "runner/rank_records.h"

namespace trainyard::runner {

// Trains, evaluates and tests. Throws UserError for a launch that this program cannot run, CommunicationError
// where a peer has gone; the caller then records the failure and leaves without touching the group again.
void train(const experiments::Launch& launch, const Environment& environment, RankRecords& records);

}  // namespace trainyard::runner
