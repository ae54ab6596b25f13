// One rank of bench_strong_scaling. It trains its part of the batches in turns: as a replica, and on its own.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "experiments/run/run.h"

namespace trainyard::bench {

// - `unconnected`: the ranks do not communicate.
// - `in_step`: as `unconnected`, but all ranks wait for each other after each step.
// - `ddp`: the ranks are replicas and exchange gradients.
enum Arm { unconnected, in_step, ddp };
inline constexpr std::size_t arms = 3;

// Seconds per epoch, as means over ranks.
struct EpochSeconds {
  double whole = 0;      // until the last step of the rank
  double compute = 0;    // forward and backward, including writing and adding up gradients
  double exposed = 0;    // waiting for gradients, parameters or other ranks
  double straggler = 0;  // the part of `exposed` that is waiting for the slowest rank
  double optimizer = 0;
  double barrier = 0;  // not part of the epoch: one barrier, measured after it
};

// By arm and round.
using Rounds = std::array<std::vector<EpochSeconds>, arms>;

// Train as rank `rank` of the replicas of `run`. Ranks find each other through the file `rendezvous`.
// - In each round every arm has one turn of at least `turn_seconds`, in whole epochs, from the initial
//   weights.
// - Some epochs are trained before the first round. They are not counted.
Rounds train_in_turns(const experiments::Run& run, int rank, const std::filesystem::path& rendezvous,
                      int rounds, double turn_seconds);

}  // namespace trainyard::bench
