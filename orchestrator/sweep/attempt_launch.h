// Launch of an attempt: its folder, its run file, and the commands and environments of its ranks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/launch.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/rank/rank_group_files.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/sweep/collector.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// What the sweep gives an attempt to do.
struct Assignment {
  const PlannedRun& planned;
  std::vector<Device> devices;  // of each rank, as leased
  bool host_exclusive = false;  // no run starts beside it
  bool host_locked = false;     // no other sweep of this host measures times meanwhile
  int retries_left = 0;         // how many attempts may follow it
  std::optional<int> adopts;    // continues that attempt, which an earlier orchestrator launched and left
};

// Makes the folder of a new attempt. UserError if the run's folder is a link.
AttemptPlace new_attempt(const Yard& yard, const db::Database& database, const PlannedRun& planned);
AttemptPlace known_attempt(const Yard& yard, const PlannedRun& planned, int attempt);

std::filesystem::path run_file_of(const AttemptPlace& place);
std::filesystem::path rank_log_of(const AttemptPlace& place, int rank);

// The content of the run file. `resumes`: where the attempt goes on. Makes the folder of checkpoints if the
// run keeps any.
experiments::Launch launch_of(const Assignment& assignment, const AttemptPlace& place, const Yard& yard,
                              const std::string& experiment,
                              const std::optional<experiments::Resumes>& resumes);

// The commands of its ranks. `token`: in the environment of each of their processes (`orphans.h`).
LaunchSpec launch_spec_of(const Assignment& assignment, const AttemptPlace& place, const Programs& programs,
                          const std::string& token);

// Each CPU once that a rank is pinned to; none if ranks run elsewhere.
std::vector<int> leased_cores(const std::vector<Device>& devices);

}  // namespace trainyard::orchestrator
