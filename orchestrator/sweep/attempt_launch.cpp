#include "orchestrator/sweep/attempt_launch.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "db/queries/queries.h"
#include "orchestrator/plan/resume_point.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/sweep/commit.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

AttemptPlace known_attempt(const Yard& yard, const PlannedRun& planned, int attempt, int ranks) {
  const bool elsewhere = planned.devices.front().cores.empty();  // on hosts that the launcher chooses
  return {yard.attempt(planned.key, attempt), planned.key, attempt, ranks, elsewhere};
}

// Removed folders had numbers too. The database has them. The folder of the yard is not created: if it is missing, the yard
// was moved. The target of a link is.
AttemptPlace new_attempt(const Yard& yard, const db::Database& database, const PlannedRun& planned,
                         int ranks) {
  if (yard.leads_out(planned.key))
    throw UserError(yard.run(planned.key).string() + " is a link",
                    "move it away: the folder of a run must be in the yard itself");
  if (yard.runs() == yard.root() / "runs")
    fs::create_directory(yard.runs());
  else
    fs::create_directories(yard.runs());
  fs::create_directory(yard.run(planned.key));
  const int last =
      std::max(last_attempt(yard.run(planned.key)), db::last_known_attempt(database, planned.key));
  AttemptPlace place = known_attempt(yard, planned, last + 1, ranks);
  fs::create_directory(place.directory);
  return place;
}

fs::path run_file_of(const AttemptPlace& place) {
  return place.directory / experiments::run_file_name;
}

fs::path rank_log_of(const AttemptPlace& place, int rank) {
  return place.directory / experiments::rank_log_name(rank);
}

experiments::Launch launch_of(const Assignment& assignment, const AttemptPlace& place, const Yard& yard,
                              const std::string& experiment,
                              const std::optional<experiments::Resumes>& resumes) {
  const PlannedRun& planned = assignment.planned;
  experiments::Launch launch;
  launch.key = place.key;
  launch.attempt = place.attempt;
  launch.records = place.directory;
  launch.experiment = experiment;
  launch.run = planned.run;
  launch.host_exclusive = assignment.host_exclusive;
  launch.times_needed = assignment.times_needed;
  launch.devices_shared =
      planned.devices_shared &&
      (!assignment.membership || distinct_devices(assignment.devices) < assignment.devices.size());
  launch.probe = planned.probe;
  launch.retries_left = assignment.retries_left;
  launch.circumstances = planned.circumstances;
  if (!planned.run.checkpoint.empty()) launch.checkpoints = make_checkpoints_folder(yard, planned.key);
  launch.resumes = resumes;
  launch.membership = assignment.membership;
  launch.created = experiments::utc_now();
  launch.commit = commit();
  for (const Device& device : assignment.devices) {
    if (device.cores.empty()) {  // placed by the launcher: a rank detects its GPU
      if (!device.gpu.empty()) launch.devices.push_back(experiments::gpu_of_task(launch.devices.size()));
      continue;
    }
    launch.devices.push_back(device.name);
    launch.cores.push_back(device.cores);
  }
  return launch;
}

namespace {

// CUDA_VISIBLE_DEVICES of a user's own program. It uses the GPU of its LOCAL_RANK, as under torchrun.
std::string visible_gpus(const std::vector<Device>& devices) {
  std::vector<std::string> shown;
  for (const Device& device : devices)
    if (!device.uuid.empty() && std::ranges::find(shown, device.uuid) == shown.end())
      shown.push_back(device.uuid);
  return joined(shown, std::identity(), ",");
}

RankCommand rank_command(const Assignment& assignment, const AttemptPlace& place, const Programs& programs,
                         const std::string& token, int rank) {
  const PlannedRun& planned = assignment.planned;
  const experiments::Strategy& strategy = planned.run.strategy;
  RankCommand command{
      .argv = strategy.foreign() ? strategy.command : std::vector<std::string>{programs.runner.string()},
      .environment = {{"OMP_NUM_THREADS", std::to_string(planned.circumstances.threads_per_rank)},
                      {"TRAINYARD_RUN", run_file_of(place).string()},
                      {log::level_variable, std::string(to_text(log::level_from_environment()))},
                      {token_variable, token}},
      .cores = assignment.devices.at(static_cast<std::size_t>(rank)).cores,
      .log = rank_log_of(place, rank),
      .folder = strategy.folder};
  command.environment.insert(strategy.environment.begin(), strategy.environment.end());
  const std::string gpus = strategy.foreign() ? visible_gpus(assignment.devices) : "";
  if (!gpus.empty()) command.environment["CUDA_VISIBLE_DEVICES"] = gpus;
  return command;
}

}  // namespace

LaunchSpec launch_spec_of(const Assignment& assignment, const AttemptPlace& place, const Programs& programs,
                          const std::string& token) {
  LaunchSpec spec{place.directory,
                  place.key + "/" + std::to_string(place.attempt),
                  token,
                  assignment.planned.run.strategy.foreign(),
                  {}};
  for (int rank = 0; rank < place.world_size; ++rank)
    spec.ranks.push_back(rank_command(assignment, place, programs, token, rank));
  return spec;
}

std::vector<int> leased_cores(const std::vector<Device>& devices) {
  std::set<int> cores;
  for (const Device& device : devices) cores.insert(device.cores.begin(), device.cores.end());
  return {cores.begin(), cores.end()};
}

}  // namespace trainyard::orchestrator
