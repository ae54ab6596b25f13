// One of the ranks that bench_strong_scaling times: each trains the same share of the same batches, now as a
// replica among others, now by itself.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "experiments/run/run.h"

namespace trainyard::bench {

// In step: unconnected, but none begins a step before all have done theirs.
enum Arm { unconnected, in_step, ddp };
inline constexpr std::size_t arms = 3;

// Seconds of an epoch, means over ranks.
struct EpochSeconds {
  double whole = 0;      // to this rank's last step
  double compute = 0;    // forward and backward, with writing and adding up gradients in them
  double exposed = 0;    // waiting for gradients and parameters, or for the others
  double straggler = 0;  // of that, for the slowest to come
  double optimizer = 0;
  double barrier = 0;  // not of the epoch: a barrier of ranks that wait already, measured right behind it
};

// By arm, round by round.
using Rounds = std::array<std::vector<EpochSeconds>, arms>;

// As rank `rank` of the replicas of `run`, which meet in the file `meeting_place`: in each round all arms
// take their turn of at least `turn_seconds`, in whole epochs and from the first weights. Some epochs are
// trained first and not counted.
Rounds train_in_turns(const experiments::Run& run, int rank, const std::filesystem::path& meeting_place,
                      int rounds, double turn_seconds);

}  // namespace trainyard::bench
