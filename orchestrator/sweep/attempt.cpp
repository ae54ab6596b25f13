#include "orchestrator/sweep/attempt.h"

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/log.h"
#include "orchestrator/rank/orphans.h"

namespace trainyard::orchestrator {

namespace {

constexpr auto follow_interval = std::chrono::milliseconds(100);
constexpr auto progress_interval = std::chrono::milliseconds(200);
constexpr auto look_interval = std::chrono::seconds(1);
constexpr auto late_records = std::chrono::seconds(3);  // later than this a network file system is broken

std::chrono::steady_clock::duration duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

Attempt::Attempt(const PlannedRun& planned, std::vector<Device> devices, bool host_exclusive,
                 Workplace workplace, int retries_left, std::optional<int> adopts)
    : planned_(planned),
      devices_(std::move(devices)),
      host_exclusive_(host_exclusive),
      retries_left_(retries_left),
      workplace_(workplace),
      place_(adopts ? old_place(workplace.yard, planned, *adopts) : new_place(workplace, planned)),
      run_file_(place_.directory / experiments::run_file_name),
      begins_(adopts ? ResumePoint{experiments::read_launch(run_file_).resumes, {}} : resume_point()),
      token_(new_token()),
      collector_(place_, adopts ? old_run_file() : write_run_file(), workplace.ingest),
      life_(place_.directory, place_.world_size, started_),
      next_follow_(started_ + follow_interval),
      next_progress_(started_),
      next_look_(started_) {
  try {
    adopts ? adopt_ranks() : start();
  } catch (...) {
    end_at_once();
    throw;
  }
}

Attempt::~Attempt() {
  if (gang_) end_at_once();
}

void Attempt::end_at_once() {
  gang_.reset();
  end_children_with(token_);
}

void Attempt::start() {
  open_records();
  std::vector<std::string> names;
  for (const Device& device : devices_) names.push_back(device.name);
  record("leased", {{"devices", names}, {"token", token_}, {"boot_id", boot_id()}});
  workplace_.status.run_started(planned_, place_.attempt);
  tell_where_it_begins();
  if (host_exclusive_ && !leased_cores().empty()) before_launch_ = processor_times();
  try {
    launch_ranks();
  } catch (const UserError& error) {
    launch_error_ = error.what();
    log::error("not launched", logged({{"cause", launch_error_}}));
    ended_.clear();
  }
}

log::Fields Attempt::logged(log::Fields more) const {
  log::Fields fields{
      {"run", place_.key}, {"attempt", place_.attempt}, {"label", experiments::label(planned_.run)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

double Attempt::seconds() const {
  return std::chrono::duration<double>(Clock::now() - started_).count();
}

void Attempt::open_records() {
  records_.emplace(place_.directory / experiments::orchestrator_records_name, place_.key, place_.attempt,
                   std::nullopt);
}

// Ingested by the next `collect`.
void Attempt::record(const std::string& type, const nlohmann::ordered_json& body) {
  records_->append(type, body);
}

void Attempt::add_end_fds(std::vector<int>& fds) const {
  if (gang_) gang_->add_end_fds(fds);
}

bool Attempt::step() {
  if (over_) return false;
  poll_ranks();
  follow();
  look_for_life();
  enforce();
  if (const auto end = gang_end()) finish(*end);
  return !over_;
}

void Attempt::poll_ranks() {
  std::vector<RankFailure> ended;
  for (std::size_t rank = 0; rank < ended_.size(); ++rank) {
    if (ended_[rank]) continue;
    ended_[rank] = gang_->poll(static_cast<int>(rank));
    if (!ended_[rank]) continue;
    const ExitStatus& status = *ended_[rank];
    if (!status.lost) note_exit(rank, status);
    ended.push_back({static_cast<int>(rank), status});
  }
  if (!ended.empty()) collector_.collect();
  for (const RankFailure& death : ended) {
    const bool unheard = place_.shared && death.status.clean() && !collector_.finished(death.rank);
    if (unheard)
      unheard_.push_back({death, Clock::now() + late_records});
    else
      note_death(death.rank, death.status);
  }
  std::erase_if(unheard_, [this](const PendingExit& each) {
    if (Clock::now() < each.until && !collector_.finished(each.death.rank)) return false;
    note_death(each.death.rank, each.death.status);
    return true;
  });
}

// With the time since before the launch, in which all that the rank has measured must fit. An attempt that
// was adopted began before this program.
void Attempt::note_exit(std::size_t rank, const ExitStatus& status) {
  nlohmann::ordered_json body{{"of_rank", rank}, {"code", status.code}, {"signal", status.signal}};
  if (!adopted_) body["seconds"] = seconds();
  record("exited", body);
  log::write(
      status.clean() ? log::Level::info : log::Level::warning, "rank ended",
      logged({{"rank", rank}, {"code", status.code}, {"signal", status.signal}, {"seconds", seconds()}}));
}

void Attempt::note_death(int rank, const ExitStatus& status) {
  if (collector_.finished(rank) || terminated_ || killed_) return;
  if (!status.lost) deaths_.push_back({rank, status});
  if (!terminate_at_ && !all_ended())
    end_ranks("rank " + std::to_string(rank) + " has ended before the run did",
              workplace_.options.peer_seconds);
}

void Attempt::end_ranks(const std::string& why, double after_seconds) {
  terminate_at_ = Clock::now() + duration(after_seconds);
  kill_at_ = *terminate_at_ + duration(workplace_.options.grace_seconds);
  ending_why_ = why;
  log::warning("ranks are told to end", logged({{"why", why}, {"after_seconds", after_seconds}}));
}

// Records and progress, at most as often as a person can see.
void Attempt::follow() {
  const auto now = Clock::now();
  if (now < next_follow_) return;
  next_follow_ = now + follow_interval;
  note_job();
  collector_.collect();
  tell_messages();
  if (now < next_progress_) return;
  next_progress_ = now + progress_interval;
  // The last stage of the first replica: the other stages know no loss.
  const auto rank = static_cast<int>(planned_.run.strategy.stages) - 1;
  const auto progress = experiments::read_progress(place_.directory / experiments::rank_progress_name(rank));
  workplace_.status.run_progress(planned_, progress.value_or(experiments::Progress{}));
}

void Attempt::note_job() {
  const std::string job = gang_ ? gang_->job() : "";
  if (job.empty() || job == job_) return;
  job_ = job;
  record("submitted", {{"job", job}});
  log::info("submitted", logged({{"job", job}}));
}

void Attempt::look_for_life() {
  const double timeout = workplace_.options.progress_timeout_seconds;
  const auto now = Clock::now();
  if (timeout <= 0 || now < next_look_ || terminate_at_ || !gang_) return;
  if (gang_->waiting()) life_ = Watchdog(place_.directory, place_.world_size, now);
  next_look_ = now + std::min(Clock::duration(look_interval), duration(timeout / 4));
  life_.look(now);
  if (life_.silent_seconds(now) < timeout) return;
  hang_error_ = "no progress for " + std::to_string(static_cast<long>(timeout)) + " s: " + life_.text();
  end_ranks(hang_error_, 0);
}

void Attempt::tell_messages() {
  for (const auto& text : collector_.take_messages()) {
    workplace_.status.message(experiments::label(planned_.run) + ": " + text);
    log::warning("message", logged({{"text", text}}));
  }
}

void Attempt::stop(int level) {
  if (over_ || level <= 0) return;
  const auto now = Clock::now();
  if (!stopped_) {
    stopped_ = true;
    ending_why_ = "the sweep was told to stop";
    terminate_at_ = std::min(terminate_at_.value_or(now), now);
    kill_at_ = std::min(kill_at_.value_or(Clock::time_point::max()),
                        now + duration(workplace_.options.grace_seconds));
  }
  if (level >= 2) kill_at_ = std::min(*kill_at_, now);
}

void Attempt::enforce() {
  const auto now = Clock::now();
  if (all_ended()) return;
  if (kill_at_ && now >= *kill_at_) {
    if (!killed_) signal_all(SIGKILL, ending_why_);
    killed_ = true;
  } else if (terminate_at_ && now >= *terminate_at_) {
    if (!terminated_) signal_all(SIGTERM, ending_why_);
    terminated_ = true;
  }
}

void Attempt::signal_all(int number, const std::string& why) {
  gang_->signal(number);
  record("signalled", {{"signal", number}, {"why", why}});
  log::info("signalled", logged({{"signal", number}, {"why", why}}));
}

bool Attempt::all_ended() const {
  return std::all_of(ended_.begin(), ended_.end(), [](const auto& ended) { return ended.has_value(); });
}

// Every rank has ended well, and what one of them wrote last has not come yet from its host.
bool Attempt::records_may_come() {
  const bool clean =
      std::all_of(ended_.begin(), ended_.end(), [](const auto& ended) { return ended->clean(); });
  return clean && !collector_.finished() && !unheard_.empty();
}

// Nothing while a rank runs or anything is left of the gang.
std::optional<RankGroupEnd> Attempt::gang_end() {
  if (!gang_) return RankGroupEnd{RankGroupEnd::Kind::not_started, launch_error_};
  if (!all_ended()) return std::nullopt;
  const auto end = gang_->end();
  return end && records_may_come() ? std::nullopt : end;
}

}  // namespace trainyard::orchestrator
