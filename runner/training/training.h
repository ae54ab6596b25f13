// The training of one rank from its launch file to its last record: Algorithm 1 of the published study, step
// by step.
#pragma once

#include "experiments/protocol/launch.h"
#include "runner/device/rank_process.h"
#include "runner/trainer/mesh.h"
#include "runner/training/rank_records.h"

namespace trainyard::runner {

// Trains, evaluates and tests. Throws UserError for a launch that this program cannot run, CommunicationError
// where a peer has gone; the caller then records the failure and leaves without touching the group again.
void train(const experiments::Launch& launch, const Environment& environment, RankRecords& records);

// The same for a rank that is connected already and computes with `threads`; LibTorch is told so before.
void train(const experiments::Launch& launch, const Connections& ranks, int threads, RankRecords& records);

}  // namespace trainyard::runner
