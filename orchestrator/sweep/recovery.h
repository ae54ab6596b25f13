// After a killed orchestrator: attempts to close, processes to end, and jobs to reattach to.
//
// What a killed orchestrator left behind: attempts that are neither finished nor failed, records that were
// written but not ingested, processes that outlived it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "orchestrator/launch/slurm_jobs.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/rank/rank_group_files.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// For each attempt of the yard that the database does not know or holds to be running: ingests its files,
// ends what is alive of it (see `orphans.h`), and, where its ranks did not all finish, marks it
// interrupted. Removes checkpoints of runs that have finished. The yard must be locked. `tell` hears one line
// for each. StorageError where the database cannot take it.
//
// An attempt that is `alive` all the same (see `Reattachment`) is left alone, and returned.
std::vector<LiveAttempt> recover(const Yard& yard, db::Database& database,
                                 const std::function<void(const std::string&)>& tell,
                                 const std::function<bool(const std::filesystem::path&)>& alive = {});

// Attempts of an orchestrator that has ended, whose ranks go on without it: jobs of a cluster. A successor
// adopts them; it must neither end them nor start their runs again.

class Reattachment {
 public:
  // `launcher`: that of the sweep that begins.
  explicit Reattachment(std::string launcher);
  ~Reattachment();
  Reattachment(const Reattachment&) = delete;
  Reattachment& operator=(const Reattachment&) = delete;

  // Whether the attempt in this folder is queued or runs. Where not, none of its tasks can start any more.
  // UserError where the cluster does not answer, or the attempt lives and `launcher` cannot adopt it.
  bool alive(const std::filesystem::path& attempt_folder);

 private:
  bool job_alive(const RankGroupFile& gang);
  bool step_alive(const RankGroupFile& gang);

  const SlurmQueue& queue(const std::string& allocation);

  std::string launcher_;
  std::map<std::string, SlurmQueue> queues_;  // by allocation; "": jobs. Each is asked once
};

}  // namespace trainyard::orchestrator
