#include "orchestrator/sweep/adoption.h"

#include "base/error.h"
#include "orchestrator/launch/slurm_launcher.h"
#include "orchestrator/rank/gang_file.h"

namespace trainyard::orchestrator {

namespace {

bool all_ranks_ended(const GangFile& gang) {
  for (std::size_t rank = 0; rank < gang.command.ranks.size(); ++rank)
    if (!read_rank_exit(gang.command.directory, static_cast<int>(rank))) return false;
  return true;
}

}  // namespace

Adoption::Adoption(std::string launcher) : launcher_(std::move(launcher)) {}
Adoption::~Adoption() = default;

bool Adoption::alive(const std::filesystem::path& attempt_folder) {
  const auto gang = read_gang_file(attempt_folder);
  if (!gang || all_ranks_ended(*gang)) return false;
  if (gang->launcher != "slurm") {  // its launcher died with the orchestrator
    abandon(attempt_folder);
    return false;
  }
  return gang->allocation.empty() ? job_alive(*gang) : step_alive(*gang);
}

const SlurmQueue& Adoption::queue(const std::string& allocation) {
  const auto [queue, is_new] = queues_.try_emplace(allocation, allocation);
  if (is_new) queue->second.ask_now(std::chrono::seconds(60));
  return queue->second;
}

bool Adoption::job_alive(const GangFile& gang) {
  const auto job = queue("").find(gang.job);
  if (!job || ended(*job)) {
    abandon(gang.command.directory);
    return false;
  }
  if (launcher_ != "slurm")
    throw UserError("Slurm still has job " + job->id + " of an earlier sweep: " + gang.job,
                    "go on with launcher = \"slurm\", or end it with `scancel " + job->id + "` first");
  return true;
}

// A step of another allocation than ours is ended: nobody would see it end.
bool Adoption::step_alive(const GangFile& gang) {
  const auto step = queue(gang.allocation).find(gang.job);
  if (step && launcher_ == "slurm" && own_allocation() == gang.allocation) return true;
  abandon(gang.command.directory);
  if (step)
    ClientCommand(slurm_client("scancel", {"--signal=KILL", step->id})).wait(std::chrono::seconds(10));
  return false;
}

void adopt(Plan& plan, const std::vector<LiveAttempt>& alive) {
  for (const LiveAttempt& attempt : alive)
    for (PlannedRun& run : plan.runs)
      if (run.key == attempt.key && run.state != PlanState::left_out) {
        run.state = PlanState::to_run;
        run.adopts = attempt.attempt;
      }
}

}  // namespace trainyard::orchestrator
