// What an attempt's ranks are told: its folder, its run file, their command lines and environments.
#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "db/queries/queries.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/sweep/attempt.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

// Whether its ranks run on hosts that the launcher chooses.
static bool elsewhere(const PlannedRun& planned) {
  return planned.devices.front().cores.empty();
}

// Folders that somebody has removed had numbers too, which the database knows.
AttemptPlace Attempt::new_place(const Workplace& workplace, const PlannedRun& planned) {
  const Yard& yard = workplace.yard;
  if (yard.leads_out(planned.key))
    throw UserError(yard.run(planned.key).string() + " is a link",
                    "move it away; runs lie in the yard itself");
  fs::create_directories(yard.run(planned.key));
  const int attempt = 1 + std::max(last_attempt(yard.run(planned.key)),
                                   db::last_known_attempt(workplace.database, planned.key));
  const fs::path directory = yard.attempt(planned.key, attempt);
  fs::create_directory(directory);
  return {directory, planned.key, attempt, static_cast<int>(planned.devices.size()), elsewhere(planned)};
}

ResumePoint Attempt::resume_point() const {
  if (planned_.run.checkpoint.empty()) return {};
  return find_resume_point(workplace_.yard, workplace_.database, planned_);
}

// A checkpoint that was passed over is evidence, and may be the first sign of a disk that fails.
void Attempt::tell_where_it_begins() {
  const std::string run = experiments::label(planned_.run) + ": ";
  for (const std::string& problem : begins_.problems) {
    record("message", {{"level", "warning"}, {"text", problem}});
    workplace_.status.message(run + problem);
    log::warning("checkpoint passed over", logged({{"why", problem}}));
  }
  if (begins_.at)
    log::info("goes on",
              logged({{"after_epoch", begins_.at->after_epoch}, {"of_attempt", begins_.at->attempt}}));
  if (begins_.at)
    workplace_.status.message(run + "goes on after epoch " + std::to_string(begins_.at->after_epoch) +
                              " of attempt " + std::to_string(begins_.at->attempt));
  else if (!begins_.problems.empty())
    workplace_.status.message(run + "begins anew");
}

// Returns what stands in the run file.
nlohmann::json Attempt::write_run_file() const {
  const experiments::Launch launched = launch();
  experiments::write_launch(launched);
  return experiments::to_json(launched);
}

experiments::Launch Attempt::launch() const {
  experiments::Launch launch;
  launch.key = place_.key;
  launch.attempt = place_.attempt;
  launch.records = place_.directory;
  launch.experiment = workplace_.experiment;
  launch.run = planned_.run;
  launch.host_exclusive = host_exclusive_;
  launch.devices_shared = planned_.devices_shared;
  launch.host_locked = workplace_.options.host_locked;
  launch.probe = planned_.probe;
  launch.retries_left = retries_left_;
  launch.circumstances = planned_.circumstances;
  if (!planned_.run.checkpoint.empty())
    launch.checkpoints = make_checkpoints_folder(workplace_.yard, planned_.key);
  launch.resumes = begins_.at;
  launch.created = experiments::utc_now();
  for (const Device& device : devices_) {
    if (device.cores.empty()) {  // the launcher's to place: a rank finds out which GPU it was given
      if (!device.gpu.empty()) launch.devices.push_back(experiments::gpu_of_task(launch.devices.size()));
      continue;
    }
    launch.devices.push_back(device.name);
    launch.cores.push_back(device.cores);
  }
  return launch;
}

void Attempt::launch_ranks() {
  LaunchSpec command{
      place_.directory, place_.key + "/" + std::to_string(place_.attempt), token_, foreign(), {}};
  for (int rank = 0; rank < place_.world_size; ++rank) command.ranks.push_back(rank_command(rank));
  gang_ = workplace_.launcher.launch(command);
  ended_.resize(command.ranks.size());
  const auto marks = gang_->marks();
  record("launched", marks);
  log_launch("launched", marks);
}

// "4711, 4712": the processes of a launch on this host.
static std::string pids_text(const nlohmann::ordered_json& marks) {
  const auto pids = marks.find("pids");
  if (pids == marks.end()) return "";
  return joined(
      *pids, [](const auto& pid) { return pid.dump(); }, ",");
}

void Attempt::log_launch(const char* event, const nlohmann::ordered_json& marks) const {
  log::info(event, logged({{"ranks", place_.world_size},
                           {"devices", joined(devices_, &Device::name, ",")},
                           {"cores", joined(
                                         leased_cores(), [](int core) { return std::to_string(core); }, ",")},
                           {"threads", planned_.circumstances.threads_per_rank},
                           {"pids", pids_text(marks)},
                           {"retries_left", retries_left_},
                           {"folder", place_.directory}}));
}

AttemptPlace Attempt::old_place(const Yard& yard, const PlannedRun& planned, int attempt) {
  return {yard.attempt(planned.key, attempt), planned.key, attempt, static_cast<int>(planned.devices.size()),
          elsewhere(planned)};
}

nlohmann::json Attempt::old_run_file() const {
  return experiments::to_json(experiments::read_launch(run_file_));
}

// What the earlier orchestrator wrote is ingested again with the rest: replaying changes nothing.
void Attempt::adopt_ranks() {
  adopted_ = true;
  open_records();
  workplace_.status.run_started(planned_, place_.attempt);
  workplace_.status.message(experiments::label(planned_.run) + ": attempt " + std::to_string(place_.attempt) +
                            " is still under way and is gone on with");
  gang_ = workplace_.launcher.adopt(place_.directory);
  ended_.resize(static_cast<std::size_t>(place_.world_size));
  record("adopted", gang_->marks());
  log_launch("adopted", gang_->marks());
}

bool Attempt::foreign() const {
  return planned_.run.strategy.foreign();
}

// A program of the user's takes the GPU of its LOCAL_RANK, as under torchrun: of those it is shown.
static std::string visible_gpus(const std::vector<Device>& devices) {
  std::vector<std::string> shown;
  for (const Device& device : devices)
    if (!device.uuid.empty() && std::find(shown.begin(), shown.end(), device.uuid) == shown.end())
      shown.push_back(device.uuid);
  std::string text;
  for (const std::string& uuid : shown) text += (text.empty() ? "" : ",") + uuid;
  return text;
}

RankCommand Attempt::rank_command(int rank) const {
  RankCommand command{
      .argv = foreign() ? planned_.run.strategy.command
                        : std::vector<std::string>{workplace_.programs.runner.string()},
      .environment = {{"OMP_NUM_THREADS", std::to_string(planned_.circumstances.threads_per_rank)},
                      {"TRAINYARD_RUN", run_file_.string()},
                      {log::level_variable, std::string(to_text(log::level_from_environment()))},
                      {token_variable, token_}},
      .cores = devices_.at(static_cast<std::size_t>(rank)).cores,
      .log = rank_log(rank),
      .folder = planned_.run.strategy.folder};
  command.environment.insert(planned_.run.strategy.environment.begin(),
                             planned_.run.strategy.environment.end());
  const std::string gpus = foreign() ? visible_gpus(devices_) : "";
  if (!gpus.empty()) command.environment["CUDA_VISIBLE_DEVICES"] = gpus;
  return command;
}

fs::path Attempt::rank_log(int rank) const {
  return place_.directory / experiments::rank_log_name(rank);
}

}  // namespace trainyard::orchestrator
