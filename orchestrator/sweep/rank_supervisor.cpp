#include "orchestrator/sweep/rank_supervisor.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "orchestrator/sweep/attempt_launch.h"

namespace trainyard::orchestrator {

namespace {

constexpr auto poll_interval = std::chrono::seconds(1);
constexpr auto late_records = std::chrono::seconds(3);  // a network file system that takes longer is broken

AttemptState::Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<AttemptState::Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

RankSupervisor::RankSupervisor(AttemptPlace place, const SweepOptions& options, Collector& collector,
                               AttemptLog& log)
    : place_(std::move(place)),
      options_(options),
      collector_(collector),
      log_(log),
      state_{.grace = {duration(options.peer_seconds), duration(options.grace_seconds)}},
      watchdog_(place_.directory, place_.world_size, Clock::now()) {}

void RankSupervisor::watch(std::unique_ptr<RankGroup> ranks, bool adopted) {
  ranks_ = std::move(ranks);
  adopted_ = adopted;
  ended_.resize(static_cast<std::size_t>(place_.world_size));
}

std::vector<RankSupervisor::RankExitSeen> RankSupervisor::new_exits() {
  std::vector<RankExitSeen> exits;
  for (int rank = 0; rank < static_cast<int>(ended_.size()); ++rank) {
    auto& status = ended_[static_cast<std::size_t>(rank)];
    if (status) continue;
    status = ranks_->poll(rank);
    if (status) exits.push_back({rank, *status});
  }
  return exits;
}

void RankSupervisor::note_ends() {
  const auto exits = new_exits();
  for (const RankExitSeen& exit : exits)
    if (!exit.status.lost) note_exit(exit);
  const auto now = Clock::now();
  for (const RankExitSeen& exit : exits)
    pending_exits_.push_back(
        {exit.rank, exit.status, place_.shared && exit.status.clean() ? now + late_records : now});
  if (!exits.empty() || (!pending_exits_.empty() && !all_collected_)) collector_.collect();
  all_collected_ = collector_.drained();
  std::erase_if(pending_exits_, [&](const RankExitSeen& each) {
    const bool more_may_come = !all_collected_ || now < each.records_until;
    if (more_may_come && !collector_.finished(each.rank)) return false;
    note_loss(each);
    return true;
  });
}

// Records the exit with the seconds since before the launch, in which all times measured by the rank must
// fit. They are unknown for an adopted attempt.
void RankSupervisor::note_exit(const RankExitSeen& exit) {
  const int rank = exit.rank;
  const ExitStatus& status = exit.status;
  nlohmann::ordered_json body{{"of_rank", rank}, {"code", status.code}, {"signal", status.signal}};
  if (!adopted_) body["seconds"] = log_.seconds();
  log_.record("exited", body);
  log_.write(status.clean() ? log::Level::info : log::Level::warning, "rank ended",
             {{"rank", rank}, {"code", status.code}, {"signal", status.signal}, {"seconds", log_.seconds()}});
}

// A rank that ended after our signal has not failed.
void RankSupervisor::note_loss(const RankExitSeen& exit) {
  if (collector_.finished(exit.rank) || !state_.not_signalled()) return;
  if (!exit.status.lost) failed_.push_back(exit);
  if (!all_ended() && state_.rank_lost(exit.rank, Clock::now())) log_ending(options_.peer_seconds);
}

void RankSupervisor::exceeded(const std::string& limit) {
  if (state_.has_to_end(limit, Clock::now())) log_ending(0);
}

void RankSupervisor::log_ending(double after_seconds) const {
  log_.write(log::Level::warning, "ranks are being ended",
             {{"why", state_.why}, {"after_seconds", after_seconds}});
}

void RankSupervisor::check_progress() {
  const double timeout = options_.progress_timeout_seconds;
  const auto now = Clock::now();
  if (timeout <= 0 || now < next_poll_ || state_.phase != AttemptState::Phase::running || !ranks_) return;
  if (ranks_->waiting()) watchdog_ = Watchdog(place_.directory, place_.world_size, now);
  next_poll_ = now + std::min(Clock::duration(poll_interval), duration(timeout / 4));
  watchdog_.poll(now);
  if (watchdog_.silent_seconds(now) < timeout) return;
  const auto why = fmt::format("no progress for {} s: {}", static_cast<long>(timeout), watchdog_.text());
  if (state_.no_progress(why, now)) log_ending(0);
}

void RankSupervisor::signal_ranks() {
  const int signal = all_ended() ? 0 : state_.time_passed(Clock::now());
  if (signal == 0) return;
  ranks_->signal(signal);
  log_.record("signalled", {{"signal", signal}, {"why", state_.why}});
  log_.write(log::Level::info, "signalled", {{"signal", signal}, {"why", state_.why}});
}

void RankSupervisor::note_job() {
  const std::string job = ranks_ ? ranks_->job() : "";
  if (job.empty() || job == job_) return;
  job_ = job;
  log_.record("submitted", {{"job", job}});
  log_.write(log::Level::info, "submitted", {{"job", job}});
}

bool RankSupervisor::all_ended() const {
  return std::ranges::all_of(ended_, [](const auto& ended) { return ended.has_value(); });
}

// Whether records of a rank are not collected, or all ranks exited cleanly while the last records of one have
// not arrived from its host.
bool RankSupervisor::records_may_come() const {
  if (pending_exits_.empty()) return false;
  const bool clean = std::ranges::all_of(ended_, [](const auto& ended) { return ended->clean(); });
  return !all_collected_ || (clean && !collector_.finished());
}

std::optional<RankGroupEnd> RankSupervisor::end() {
  if (!ranks_) return RankGroupEnd{experiments::EndReason::not_started, launch_error_};
  if (!all_ended()) return std::nullopt;
  const auto end = ranks_->end();
  return end && records_may_come() ? std::nullopt : end;
}

void RankSupervisor::release() {
  ranks_.reset();
  state_.phase = AttemptState::Phase::over;
}

std::vector<RankFailure> RankSupervisor::failures() const {
  std::vector<RankFailure> failures;
  for (const RankExitSeen& failed : failed_) {
    const std::string error = error_of(failed);
    const auto* end = collector_.end(failed.rank);
    failures.push_back({failed.rank, failed.status, error,
                        end != nullptr && end->reason ? *end->reason : experiments::reason_in_text(error)});
  }
  return failures;
}

std::optional<AttemptEnd> RankSupervisor::hang() const {
  if (state_.hang.empty()) return std::nullopt;
  return AttemptEnd{experiments::EndReason::failed, watchdog_.first_stalled_rank(), state_.hang};
}

// Why a signal was sent, for messages. Empty if that is not known.
std::string RankSupervisor::reason_of(int signal) const {
  if (signal == SIGXFSZ) return ": a file became larger than `ulimit -f` allows";
  if (signal == SIGKILL && memory_kills() > memory_kills_before_)
    return ": the kernel ended it because memory ran out; use smaller batches or fewer processes, or raise "
           "the "
           "limit of the cgroup";
  return "";
}

// Error from the `end` record of the rank, else from its log, else from its exit status.
std::string RankSupervisor::error_of(const RankExitSeen& failed) const {
  const int rank = failed.rank;
  const ExitStatus& status = failed.status;
  const auto log = rank_log_of(place_, rank);
  if (const auto* end = collector_.end(rank); end != nullptr && !end->error.empty()) return end->error;
  const std::string exited = to_text(status) + reason_of(status.signal);
  const std::string by_signal = status.signal != 0 ? " (" + exited + ")" : "";
  if (const auto line = last_error_line(log)) return *line + by_signal;
  if (status.clean()) {
    const auto left_out = collector_.left_out(rank);
    return fmt::format("rank {} {}{}", rank,
                       collector_.said_finished(rank)
                           ? "reported that it finished, but that record does not count"
                           : "ended without reporting that it finished",
                       left_out ? "; in its records " + *left_out : "");
  }
  const auto line = status.signal == 0 ? last_line(log) : std::nullopt;
  return line ? fmt::format("{} ({})", *line, exited) : fmt::format("rank {}: {}", rank, exited);
}

}  // namespace trainyard::orchestrator
