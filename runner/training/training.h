// The training of one rank, from its launch file to its last record.
#pragma once

#include "experiments/protocol/launch.h"
#include "runner/device/rank_process.h"
#include "runner/trainer/mesh.h"
#include "runner/training/rank_records.h"

namespace trainyard::runner {

// Trains, evaluates and tests. UserError for a launch that this program cannot run. CommunicationError if a
// peer has ended: the caller then records the failure and exits without using the group again.
void train(const experiments::Launch& launch, const Environment& environment, RankRecords& records);

// The same for a connected rank. `threads` is recorded, and the caller has already set it in LibTorch.
void train(const experiments::Launch& launch, const Connections& ranks, int threads, RankRecords& records);

}  // namespace trainyard::runner
