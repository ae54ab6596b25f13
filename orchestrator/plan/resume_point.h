// Resume point of an attempt: the last epoch that every stage has checkpointed and every rank has recorded.
//
// If a checkpoint is damaged or lacks a stage, the previous one is used. Without any the run starts from the
// beginning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "experiments/protocol/launch.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

struct ResumePoint {
  std::optional<experiments::Resumes> at;  // empty: from the beginning
  std::vector<std::string> problems;       // why not from a later epoch
};

// Finds the resume point of a run that keeps checkpoints. The records of its attempts must be ingested.
// - Only attempts with the same release, build, environment and LibTorch are resumed, because others may round
//   differently.
// - Host, processor and threads may differ. Then the times of the run do not count (`times_count` in
//   db/README.md).
// - A foreign program keeps its own checkpoints and reports them in `checkpoint` records of rank 0.
ResumePoint find_resume_point(const Yard& yard, const db::Database& database, const PlannedRun& planned);

// Creates the run's checkpoint folder if it does not exist. Returns its path.
std::filesystem::path make_checkpoints_folder(const Yard& yard, const std::string& key);

// Removes the checkpoints of a finished or removed run. The next `recover` removes what is still in use now.
void remove_checkpoints(const Yard& yard, const std::string& key);

}  // namespace trainyard::orchestrator
