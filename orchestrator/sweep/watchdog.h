// Whether a run still gets anywhere: a process that lives may hang for ever. Signs of life are a progress
// file that changes, a spool or a log that grows (a foreign program may write no progress). A run hangs when
// none of its ranks has given one for a while: ranks wait for each other, so one that hangs stops all.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/progress.h"

namespace trainyard::orchestrator {

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  Watchdog(std::filesystem::path attempt_folder, int ranks, Clock::time_point now);

  // Reads the files of all ranks.
  void look(Clock::time_point now);
  double silent_seconds(Clock::time_point now) const;  // since the last sign of any rank, as far as looked

  // The rank that fell silent first, and how far it had come: "rank 1 stood still first, in epoch 2, step
  // 17".
  int first_stalled_rank() const;
  std::string text() const;

 private:
  struct Rank {
    std::uint64_t stamp = 0;
    std::uintmax_t bytes = 0;  // of spool and log
    std::optional<experiments::Progress> progress;
    Clock::time_point last_sign;
  };

  std::filesystem::path folder_;
  std::vector<Rank> ranks_;
};

}  // namespace trainyard::orchestrator
