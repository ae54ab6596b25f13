// Attempts of an orchestrator that has ended, whose ranks go on without it: jobs of a cluster. A successor
// adopts them; it must neither end them nor start their runs again.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "orchestrator/launch/slurm_queue.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/rank/gang_file.h"
#include "orchestrator/sweep/recovery.h"

namespace trainyard::orchestrator {

class Adoption {
 public:
  // `launcher`: that of the sweep that begins.
  explicit Adoption(std::string launcher);
  ~Adoption();
  Adoption(const Adoption&) = delete;
  Adoption& operator=(const Adoption&) = delete;

  // Whether the attempt in this folder is queued or runs. Where not, none of its tasks can start any more.
  // UserError where the cluster does not answer, or the attempt lives and `launcher` cannot adopt it.
  bool alive(const std::filesystem::path& attempt_folder);

 private:
  bool job_alive(const GangFile& gang);
  bool step_alive(const GangFile& gang);

  const SlurmQueue& queue(const std::string& allocation);

  std::string launcher_;
  std::map<std::string, SlurmQueue> queues_;  // by allocation; "": jobs. Each is asked once
};

// Runs of the plan whose attempts live go on with them.
void adopt(Plan& plan, const std::vector<LiveAttempt>& alive);

}  // namespace trainyard::orchestrator
