// Recovery after a killed orchestrator: attempts to close, records to ingest, processes to end, and jobs to
// reattach to.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "orchestrator/launch/slurm_jobs.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// Closes the attempts of the yard that the database does not have or lists as running.
// - The yard must be locked.
// - Ingests the files of an attempt, kills its processes (`orphans.h`), and marks it interrupted unless all
//   ranks finished.
// - Kills nothing and adopts nothing if the run file of the attempt names another folder that exists. Then the yard is a
//   copy, and the processes belong to its original.
// - Leaves an attempt alone if it is `alive` (see `Reattachment`), and returns it.
// - Removes the checkpoints of finished runs.
// - Calls `on_message` with one line per interrupted attempt.
// - StorageError if the database cannot be written. UserError if the supervisor of an attempt has not ended within
//   five seconds.
std::vector<LiveAttempt> recover(const Yard& yard, db::Database& database,
                                 const std::function<void(const std::string&)>& on_message,
                                 const std::function<bool(const std::filesystem::path&)>& alive = {});

// Finds attempts whose ranks outlive their orchestrator, as jobs on a cluster. The next orchestrator adopts
// them. It must neither end them nor start their runs again.
class Reattachment {
 public:
  // `launcher`: of the new sweep.
  explicit Reattachment(std::string launcher) : launcher_(std::move(launcher)) {}

  // Whether the attempt in this folder is queued or running. If not, its tasks can no longer start. UserError
  // if the cluster does not answer, or if `launcher` cannot adopt the live attempt.
  bool alive(const std::filesystem::path& attempt_folder);

 private:
  const SlurmQueue& queue(const std::string& allocation);

  std::string launcher_;
  std::map<std::string, SlurmQueue> queues_;  // by allocation, "" for jobs; each is queried once
};

}  // namespace trainyard::orchestrator
