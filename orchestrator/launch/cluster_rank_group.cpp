#include "orchestrator/launch/cluster_rank_group.h"

#include <algorithm>
#include <array>
#include <csignal>

#include <nlohmann/json.hpp>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/host.h"
#include "experiments/protocol/record.h"
#include "orchestrator/launch/slurm_launcher.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/rank/rank_group_files.h"

namespace trainyard::orchestrator {

namespace {

constexpr auto between_polls = std::chrono::milliseconds(100);
constexpr auto late_files = std::chrono::seconds(5);  // maximum delay on a network file system
constexpr auto late_local_files = std::chrono::milliseconds(500);
constexpr const char* at_its_limit = "its time limit was reached";

// Whether the file system is local, by the magic numbers of linux/magic.h and of XFS, ZFS and bcachefs. All
// others may be shared.
bool on_a_local_disk(const std::filesystem::path& folder) {
  constexpr std::array<unsigned long, 8> local{0xEF53,     0x58465342, 0x9123683E, 0x01021994,
                                               0x794C7630, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E};
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) return false;
  return std::find(local.begin(), local.end(), static_cast<unsigned long>(system.f_type)) != local.end();
}

}  // namespace

ClusterRankGroup::ClusterRankGroup(const LaunchSpec& spec)
    : folder_(spec.directory),
      first_rank_log_(spec.ranks.front().log),
      world_size_(static_cast<int>(spec.ranks.size())),
      patience_(on_a_local_disk(folder_) ? Clock::duration(late_local_files) : Clock::duration(late_files)) {}

void ClusterRankGroup::poll_job() {
  const auto now = Clock::now();
  if (now < next_poll_) return;
  next_poll_ = now + between_polls;
  step();
  const auto names = fresh_listing(folder_);
  const auto there = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  for (int rank = 0; rank < world_size_; ++rank) {
    begun_ = begun_ || there(experiments::rank_records_name(rank)) || there(rank_exit_name(rank));
    if (exits_.contains(rank) || !there(rank_exit_name(rank))) continue;
    const auto exit = read_rank_exit(folder_, rank);
    if (!exit) continue;
    if (exit->received_signal != 0 && !signalled_by_us_ && signal_of_others_ == 0)
      signal_of_others_ = exit->received_signal;
    exits_.emplace(rank, *exit);
  }
  const auto job = over();
  if (job && over_since_ == Clock::time_point::max())
    over_since_ = job->reason == EndReason::not_started ? now - patience_ : now;
}

std::optional<ExitStatus> ClusterRankGroup::poll(int rank) {
  poll_job();
  const auto exit = exits_.find(rank);
  if (exit != exits_.end()) {
    ExitStatus status = exit->second.status;
    status.lost = !status.clean() && signal_of_others_ != 0 && exit->second.received_signal != 0;
    if (!status.clean()) poll_soon();
    return status;
  }
  if (over_since_ == Clock::time_point::max() || Clock::now() - over_since_ < patience_) return std::nullopt;
  any_lost_ = true;
  return ExitStatus{-1, 0, true};
}

bool ClusterRankGroup::all_clean() const {
  return all_ended() && std::all_of(exits_.begin(), exits_.end(),
                                    [](const auto& exit) { return exit.second.status.clean(); });
}

std::optional<RankGroupEnd> ClusterRankGroup::end() {
  if (all_clean()) {
    detach();
    return RankGroupEnd{};
  }
  poll_job();
  const auto job = over();
  if (!job) return std::nullopt;
  if (job->reason == EndReason::not_started) return job;
  if (job->reason == EndReason::out_of_time || signal_of_others_ == SIGUSR1)
    return RankGroupEnd{EndReason::out_of_time, at_its_limit};
  if (job->reason) return job;
  if (signal_of_others_ != 0)
    return RankGroupEnd{EndReason::preempted, "its ranks were ended from outside: " + job->why};
  if (any_lost_ && !signalled_by_us_) return RankGroupEnd{EndReason::preempted, job->why};
  return RankGroupEnd{};
}

void ClusterRankGroup::signal(int number) {
  signalled_by_us_ = true;
  signal_job(number);
}

namespace fs = std::filesystem;

namespace {

constexpr const char* seen_name = "slurm-sees-spool";

fs::path question(const fs::path& folder, const std::string& name) {
  return folder / ("asked-" + name);
}
fs::path answer(const fs::path& folder, const std::string& name) {
  return folder / ("probe-" + name);
}

}  // namespace

SharedDirCheck::SharedDirCheck(fs::path runs) : runs_(std::move(runs)), name_(new_token().substr(0, 12)) {
  write_whole_file(question(runs_, name_), "\n");
}

SharedDirCheck::~SharedDirCheck() {
  std::error_code ignored;
  for (const auto& file : {question(runs_, name_), answer(runs_, name_), runs_ / slurm_log_name})
    fs::remove(file, ignored);
}

std::string SharedDirCheck::job_name() const {
  return "trainyard-probe-" + name_;
}

std::vector<std::string> SharedDirCheck::task(const Programs& programs) const {
  return {programs.task.string(), "--probe", runs_.string(), name_, programs.runner.string()};
}

bool SharedDirCheck::answered(const Programs& programs) const {
  fresh_listing(runs_);
  const auto said = nlohmann::json::parse(whole_file(answer(runs_, name_)), nullptr, false);
  if (!said.is_object()) return false;
  const std::string host = said.value("host", "a node");
  if (!said.value("sees", false))
    throw UserError("a job on " + host + " cannot see a file that this host wrote to " + runs_.string(),
                    share_the_spool);
  if (!said.value("runs", false))
    throw UserError("a job on " + host + " cannot run " + programs.runner.string(),
                    "install trainyard in a folder that all nodes share");
  return true;
}

bool spool_was_seen(const Yard& yard) {
  return whole_file(yard.root() / seen_name) == yard.runs().string() + "\n";
}

void note_spool_seen(const Yard& yard) {
  write_whole_file(yard.root() / seen_name, yard.runs().string() + "\n");
}

int answer_spool_probe(const fs::path& folder, const std::string& name, const fs::path& runner) {
  if (!fs::is_directory(folder)) return 1;
  const nlohmann::ordered_json json = {{"host", host_name()},
                                       {"sees", fs::exists(question(folder, name))},
                                       {"runs", ::access(runner.c_str(), X_OK) == 0}};
  write_whole_file(answer(folder, name), json.dump() + "\n");
  return 0;
}

}  // namespace trainyard::orchestrator
