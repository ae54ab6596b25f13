#include "orchestrator/adoption.h"

#include "models/error.h"
#include "orchestrator/gang_file.h"

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
  if (!queue_) {
    queue_ = std::make_unique<SlurmQueue>();
    queue_->ask_now(std::chrono::seconds(60));
  }
  const auto job = queue_->find(gang->job);
  if (!job || ended(*job)) {
    abandon(attempt_folder);
    return false;
  }
  if (launcher_ != "slurm")
    throw UserError("Slurm still has job " + job->id + " of an earlier sweep: " + gang->job,
                    "go on with launcher = \"slurm\", or end it with `scancel " + job->id + "` first");
  return true;
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
