// Where an attempt goes on: the last epoch that is whole in the checkpoint of every stage and in the records
// of every rank. A checkpoint that is damaged, or of which a stage is missing, is passed over for the one
// before; without any the run begins anew.
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

// Of a run that keeps checkpoints; the records of its attempts must have been ingested. Only attempts of the
// same release and LibTorch are gone on from: another one may round otherwise, and what it trains would be of
// neither. Under another host, processor or number of threads the run goes on; its times then do not count
// (`times_count` in db/README.md). A foreign program keeps its checkpoints itself and says so by `checkpoint`
// records of rank 0.
ResumePoint find_resume_point(const Yard& yard, const db::Database& database, const PlannedRun& planned);

// The run's folder of checkpoints: an empty one, or what is there.
std::filesystem::path make_checkpoints_folder(const Yard& yard, const std::string& key);

// Once the run has finished or is removed; what cannot be removed now is by the next `recover`.
void remove_checkpoints(const Yard& yard, const std::string& key);

}  // namespace trainyard::orchestrator
