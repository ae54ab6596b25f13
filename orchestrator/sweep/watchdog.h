// Hang detector for the ranks of a run.
//
// - A sign of life is a progress file that changes, or records or a log that grow. A foreign program may
//   write no progress file.
// - A run hangs if no rank has given a sign for a while. Ranks wait for each other, so one that hangs stops
//   all.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/progress.h"

namespace trainyard::orchestrator {

const char* phase_name(experiments::Phase phase);  // "training", "parity check"

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  Watchdog(std::filesystem::path attempt_folder, int ranks, Clock::time_point now);

  // Reads the files of all ranks.
  void poll(Clock::time_point now);
  double silent_seconds(Clock::time_point now) const;  // since the last sign of any rank that `poll` saw

  // The rank that stalled first, and its progress: "rank 1 stalled first, in epoch 2, training step 17".
  int first_stalled_rank() const;
  std::string text() const;

 private:
  struct Rank {
    std::uint64_t stamp = 0;
    std::uintmax_t bytes = 0;  // of records and log
    std::optional<experiments::Progress> progress;
    Clock::time_point last_sign;
  };

  std::filesystem::path folder_;
  std::vector<Rank> ranks_;
};

}  // namespace trainyard::orchestrator
