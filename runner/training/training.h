// The training of one rank, from its launch file to its last record.
#pragma once

#include <filesystem>
#include <optional>

#include "experiments/protocol/launch.h"
#include "runner/device/rank_process.h"
#include "runner/trainer/mesh.h"
#include "runner/training/rank_records.h"

namespace trainyard::runner {

// Trains, evaluates and tests. UserError for a launch that this program cannot run. CommunicationError if a
// peer has ended: the caller then records the failure and exits without using the group again.
// `replays`: a folder with the logs of asynchronous servers, whose run is trained again in this process.
using Replays = std::optional<std::filesystem::path>;
void train(const experiments::Launch& launch, const Environment& environment, RankRecords& records,
           const Replays& replays = {});

// The same for a connected rank. `threads` is recorded, and the caller has already set it in LibTorch.
void train(const experiments::Launch& launch, const Connections& ranks, int threads, RankRecords& records,
           const Replays& replays = {});

}  // namespace trainyard::runner
