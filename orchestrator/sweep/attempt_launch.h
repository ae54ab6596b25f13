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

// Task of an attempt, assigned by the sweep.
struct Assignment {
  const PlannedRun& planned;
  std::vector<Device> devices;  // one per rank, as leased
  bool host_exclusive = false;  // no other run starts meanwhile
  bool times_needed = true;
  int retries_left = 0;                               // number of attempts that may follow
  std::optional<experiments::Membership> membership;  // empty: all replicas
  std::optional<int> adopts;  // attempt to continue, launched by an earlier orchestrator
};

// Creates the folder of a new attempt. UserError if the run's folder is a link.
AttemptPlace new_attempt(const Yard& yard, const db::Database& database, const PlannedRun& planned,
                         int ranks);
AttemptPlace known_attempt(const Yard& yard, const PlannedRun& planned, int attempt, int ranks);

std::filesystem::path run_file_of(const AttemptPlace& place);
std::filesystem::path rank_log_of(const AttemptPlace& place, int rank);

// Content of the run file. `resumes`: where the attempt continues. Creates the checkpoint folder if the run
// keeps checkpoints.
experiments::Launch launch_of(const Assignment& assignment, const AttemptPlace& place, const Yard& yard,
                              const std::string& experiment,
                              const std::optional<experiments::Resumes>& resumes);

// Commands of the ranks. `token` is in the environment of each of their processes (`orphans.h`).
LaunchSpec launch_spec_of(const Assignment& assignment, const AttemptPlace& place, const Programs& programs,
                          const std::string& token);

// CPUs that ranks are pinned to, each once. Empty if ranks run on other hosts.
std::vector<int> leased_cores(const std::vector<Device>& devices);

}  // namespace trainyard::orchestrator
