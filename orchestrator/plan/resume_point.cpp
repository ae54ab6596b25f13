#include "orchestrator/plan/resume_point.h"

#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "db/queries/evidence.h"
#include "experiments/protocol/checkpoint.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;
using experiments::Resumes;

namespace {

using Resumable = std::map<int, db::ResumableAttempt>;  // by attempt

Resumable resumable(const db::Database& database, const PlannedRun& planned) {
  Resumable found;
  for (auto& attempt : db::resumable_attempts(database, planned.key))
    if (attempt.circumstances.release == planned.circumstances.release &&
        attempt.circumstances.libtorch == planned.circumstances.libtorch &&
        experiments::differing_settings(attempt.circumstances, planned.circumstances).empty())
      found.emplace(attempt.attempt, std::move(attempt));
  return found;
}

// Why the run cannot resume from this checkpoint. Empty if it can.
std::string problem_with(const fs::path& folder, const experiments::Checkpoint& checkpoint,
                         const PlannedRun& planned, const Resumable& attempts) {
  if (checkpoint.run != planned.key) return "it belongs to run " + checkpoint.run;
  const auto attempt = attempts.find(checkpoint.attempt);
  if (attempt == attempts.end())
    return fmt::format(
        "it belongs to attempt {}, which is missing, has finished, has impossible records, or is of another "
        "release, build or environment",
        checkpoint.attempt);
  if (attempt->second.whole_epochs < checkpoint.epoch) return "not all ranks have recorded its epoch";
  if (!checkpoint.weights) return "";
  const fs::path weights = experiments::kept_weights_file(folder, checkpoint.epoch);
  std::error_code missing;
  if (!fs::exists(weights, missing) || experiments::sum_of_file(weights) != *checkpoint.weights)
    return "the weights kept up to its epoch are missing or have changed";
  return "";
}

// The attempt that wrote all stages of a checkpoint, or why it cannot be used.
struct CheckpointCheck {
  int attempt = 0;
  std::string problem;
};

CheckpointCheck look_at(const fs::path& folder, std::int64_t epoch, const PlannedRun& planned,
                        const Resumable& attempts) {
  CheckpointCheck looked;
  for (int stage = 0; stage < planned.run.strategy.parts_of_checkpoint(); ++stage) {
    if (!fs::exists(experiments::checkpoint_file(folder, epoch, stage)))
      return {0, fmt::format("stage {} is missing", stage)};
    try {
      const auto checkpoint = experiments::check_checkpoint(folder, epoch, stage);
      looked.problem = checkpoint.epoch == epoch && checkpoint.stage == stage
                           ? problem_with(folder, checkpoint, planned, attempts)
                           : "its epoch or stage differs from its file name";
      if (looked.problem.empty() && stage > 0 && checkpoint.attempt != looked.attempt)
        looked.problem = "its stages are from different attempts";
      looked.attempt = checkpoint.attempt;
    } catch (const UserError& error) {
      looked.problem = error.what();
    }
    if (!looked.problem.empty()) return looked;
  }
  return looked;
}

std::set<std::int64_t, std::greater<>> epochs_latest_first(const fs::path& folder) {
  std::set<std::int64_t, std::greater<>> epochs;
  for (const auto& file : experiments::checkpoint_files(folder))
    if (file.stage) epochs.insert(file.epoch);
  return epochs;
}

ResumePoint own_resume_point(const fs::path& folder, const PlannedRun& planned, const Resumable& attempts) {
  ResumePoint point;
  for (const std::int64_t epoch : epochs_latest_first(folder)) {
    const CheckpointCheck looked = look_at(folder, epoch, planned, attempts);
    if (looked.problem.empty()) {
      point.at = Resumes{looked.attempt, epoch};
      return point;
    }
    point.problems.push_back(fmt::format("skipped the checkpoint of epoch {}: {}", epoch, looked.problem));
  }
  return point;
}

// The latest recorded checkpoint whose epoch all ranks have recorded.
ResumePoint foreign_resume_point(const Resumable& attempts) {
  ResumePoint point;
  for (const auto& [number, attempt] : attempts)
    for (const std::int64_t epoch : attempt.checkpoints)
      if (epoch >= 1 && epoch <= attempt.whole_epochs && (!point.at || epoch >= point.at->after_epoch))
        point.at = Resumes{number, epoch};
  return point;
}

fs::path folder_of(const Yard& yard, const std::string& key) {
  return yard.run(key) / experiments::checkpoints_folder_name;
}

}  // namespace

ResumePoint find_resume_point(const Yard& yard, const db::Database& database, const PlannedRun& planned) {
  const fs::path folder = folder_of(yard, planned.key);
  if (yard.leads_out(planned.key)) return {};
  if (!is_folder(folder) || fs::is_empty(folder)) return {};
  const Resumable attempts = resumable(database, planned);
  return planned.run.strategy.foreign() ? foreign_resume_point(attempts)
                                        : own_resume_point(folder, planned, attempts);
}

fs::path make_checkpoints_folder(const Yard& yard, const std::string& key) {
  fs::path folder = folder_of(yard, key);
  if (!is_folder(folder)) fs::remove(folder);  // a link would lead out of the yard
  fs::create_directories(folder);
  return folder;
}

void remove_checkpoints(const Yard& yard, const std::string& key) {
  if (yard.leads_out(key)) return;
  std::error_code kept;  // a network file system keeps files that are still open
  fs::remove_all(folder_of(yard, key), kept);
}

}  // namespace trainyard::orchestrator
