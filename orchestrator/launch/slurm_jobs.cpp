#include "orchestrator/launch/slurm_jobs.h"

#include <algorithm>
#include <csignal>
#include <regex>
#include <set>
#include <string_view>

#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

extern char** environ;
namespace trainyard::orchestrator {

using experiments::EndReason;

namespace {

constexpr const char* requeued = "it was requeued";
constexpr auto controller_patience = std::chrono::minutes(10);  // for a controller that does not answer
constexpr auto between_tries = std::chrono::seconds(2);

// Job number from the output of sbatch: "4711" or "4711;cluster" on a line of its own.
std::string job_id(const std::string& text) {
  static const std::regex form(R"((?:^|\n)(\d+)(?:;[^\n]*)?(?=\n|$))");
  std::smatch found;
  return std::regex_search(text, found, form) ? found.str(1) : "";
}

// Whether an error is temporary: the controller is down or busy, or accepts no more jobs for now.
bool passes(const std::string& text) {
  for (const char* sign :
       {"nable to contact", "imed out", "onnection refused", "not responding", "ransport endpoint",
        "emporarily", "SubmitJobLimit", "MaxSubmitJobs", "job submit limit", "Zero Bytes were", "ocket",
        "slurm_persist", "Unexpected message", "standby"})
    if (text.find(sign) != std::string::npos) return true;
  return false;
}

}  // namespace

SlurmJob::SlurmJob(SlurmQueue& queue, std::string name, std::vector<std::string> submit)
    : queue_(queue),
      name_(std::move(name)),
      submit_(std::move(submit)),
      known_since_(Clock::now()),
      give_up_(known_since_ + controller_patience) {
  if (!submit_.empty()) return;
  stage_ = Stage::queued;
  known_since_ = queue_.answered_at();
  read_queue();
}

// Cancels the job if it is not over.
SlurmJob::~SlurmJob() {
  if (sbatch_) queue_.submission(-1);
  if (stage_ == Stage::over || (stage_ == Stage::submitting && !sbatch_)) return;
  const std::string which = id_.empty() ? "--name=" + name_ : id_;
  try {
    ClientCommand(slurm_client("scancel", {which})).wait(std::chrono::seconds(5));
  } catch (const std::exception&) {  // a destructor can do no more
  }
}

void SlurmJob::step() {
  if (stage_ == Stage::submitting) submit();
  if (stage_ == Stage::queued || stage_ == Stage::running) read_queue();
}

void SlurmJob::submit() {
  if (sbatch_) {
    const auto answer = sbatch_->poll();
    if (!answer) return;
    sbatch_.reset();
    queue_.submission(-1);
    submitted(*answer);
    return;
  }
  if (cancel_later_) {
    stage_ = Stage::over;
    why_ = "never submitted";
    return;
  }
  if (Clock::now() < try_again_ || !queue_.may_submit()) return;
  if (try_again_ != Clock::time_point()) {  // the last submission may have succeeded all the same
    queue_.soon();
    if (queue_.answered_at() < try_again_ - between_tries) return;
    if (const auto job = queue_.find(name_)) {
      id_ = job->id;
      stage_ = Stage::queued;
      return;
    }
  }
  queue_.submission(1);
  sbatch_ = std::make_unique<ClientCommand>(slurm_client("sbatch", submit_));
}

void SlurmJob::submitted(const ClientAnswer& answer) {
  queue_.soon();
  known_since_ = Clock::now();
  id_ = answer.status.clean() ? job_id(answer.text) : "";
  if (!id_.empty()) {
    stage_ = Stage::queued;
    if (cancel_later_) cancel();
  } else if (passes(answer.text) && Clock::now() < give_up_) {
    try_again_ = Clock::now() + between_tries;
  } else {
    stage_ = Stage::over;
    reason_ = EndReason::not_started;
    why_ = "sbatch: " + complaint(answer);
  }
}

void SlurmJob::read_queue() {
  if (queue_.answered_at() < known_since_) return;
  const auto job = queue_.find(name_);
  if (!job) {  // it ended long ago
    stage_ = Stage::over;
    why_ = requeued_ ? requeued : "Slurm no longer lists the job";
    if (requeued_) reason_ = EndReason::preempted;
    return;
  }
  id_ = job->id;
  if (ended(*job)) return note_end(*job);
  const bool waiting = waits(*job);
  if (waiting && queue_.answered_at() > begun_by_ && !requeued_) {
    requeued_ = true;  // it would write into the records of its first start
    cancel();
  }
  if (!waiting) begun_by_ = std::min(begun_by_, queue_.answered_at());
  if (!requeued_) stage_ = waiting ? Stage::queued : Stage::running;
}

void SlurmJob::note_begun() {
  begun_by_ = std::min(begun_by_, Clock::now());
}

void SlurmJob::note_end(const SlurmState& job) {
  stage_ = Stage::over;
  why_ = requeued_ ? requeued : job.state + (job.reason == "None" ? "" : " (" + job.reason + ")");
  if (job.state == "TIMEOUT")
    reason_ = EndReason::out_of_time;
  else if (job.state == "OUT_OF_MEMORY")
    reason_ = EndReason::over_limits;
  else if (requeued_ || lost_job(job))
    reason_ = EndReason::preempted;
  else if (job.state == "CANCELLED")
    reason_ = EndReason::stopped;
}

void SlurmJob::signal(int number) {
  if (stage_ == Stage::submitting) cancel_later_ = true;
  if (id_.empty() || stage_ == Stage::over) return;
  queue_.soon();
  if (stage_ == Stage::queued) return cancel();
  queue_.cancel({"--signal=" + std::to_string(number), id_});
  if (number == SIGKILL) queue_.cancel({id_});
}

void SlurmJob::cancel() {
  queue_.cancel({id_});
  queue_.soon();
}

namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr auto seldom = std::chrono::seconds(5);
constexpr auto often = milliseconds(500);
constexpr auto impatience = std::chrono::seconds(10);  // how long `soon` lasts
constexpr auto too_long = std::chrono::seconds(60);    // maximum time for an answer

const std::set<std::string> ended_states{"COMPLETED",     "CANCELLED", "FAILED",      "TIMEOUT",
                                         "NODE_FAIL",     "PREEMPTED", "BOOT_FAIL",   "DEADLINE",
                                         "OUT_OF_MEMORY", "REVOKED",   "SPECIAL_EXIT"};
const std::set<std::string> waiting_states{"PENDING",      "CONFIGURING", "REQUEUED",
                                           "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"};
const std::set<std::string> lost_states{"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED", "DEADLINE"};

}  // namespace

bool waits(const SlurmState& job) {
  return waiting_states.contains(job.state);
}

bool ended(const SlurmState& job) {
  return ended_states.contains(job.state);
}

bool lost_job(const SlurmState& job) {
  return lost_states.contains(job.state);
}

std::map<std::string, SlurmState> parse_squeue(const std::string& text) {
  static const std::regex form(R"((\d[^|]*)\|([^|]*)\|([^|]*)\|(.*))");
  std::map<std::string, SlurmState> jobs;
  for (const std::string& line : nonempty_lines(text)) {
    std::smatch found;
    if (!std::regex_match(line, found, form)) continue;
    SlurmState job{found.str(1), found.str(2), found.str(3)};
    const auto [known, is_new] = jobs.emplace(found.str(4), job);
    if (!is_new && ended(known->second)) known->second = std::move(job);
  }
  return jobs;
}

std::vector<std::string> slurm_client(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{"env"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    const bool of_allocation = name.starts_with("SLURM_") && name != "SLURM_CONF" && name != "SLURM_CLUSTERS";
    if (of_allocation || name.starts_with("SQUEUE_")) argv.insert(argv.end(), {"-u", name});
  }
  argv.push_back(program);
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

void SlurmQueue::ask() {
  std::vector<std::string> arguments{"--noheader"};
  if (steps_of_.empty())
    arguments.insert(arguments.end(),
                     {"--states=all", "--user=" + std::to_string(::getuid()), "--format=%i|%T|%r|%j"});
  else
    arguments.insert(arguments.end(), {"--steps", "--jobs=" + steps_of_, "--format=%i|RUNNING|None|%j"});
  asking_since_ = Clock::now();
  asking_ = std::make_unique<ClientCommand>(slurm_client("squeue", arguments));
}

void SlurmQueue::cancel(const std::vector<std::string>& arguments) {
  cancelling_.push_back(std::make_unique<ClientCommand>(slurm_client("scancel", arguments)));
}

void SlurmQueue::step() {
  std::erase_if(cancelling_, [](const auto& command) { return command->poll().has_value(); });
  const auto now = Clock::now();
  if (!asking_ && now >= next_) ask();
  if (!asking_) return;
  if (const auto answer = asking_->poll()) {
    take(*answer);
  } else if (now - asking_since_ > too_long) {
    asking_.reset();
    trouble_ = "squeue has not answered for a minute";
    next_ = now + seldom;
  }
}

// Queries take at most a twentieth of the time, however slow the controller is.
void SlurmQueue::take(const ClientAnswer& answer) {
  const auto now = Clock::now();
  asking_.reset();
  const Clock::duration wanted = now < soon_until_ ? Clock::duration(often) : Clock::duration(seldom);
  next_ = now + std::max(wanted, 20 * (now - asking_since_));
  trouble_ = answer.status.clean() ? "" : complaint(answer);
  const bool job_gone = !steps_of_.empty() && answer.text.find("nvalid job id") != std::string::npos;
  if (job_gone) trouble_.clear();
  if (!answer.status.clean() && !job_gone) return;
  jobs_ = parse_squeue(answer.text);
  answered_at_ = asking_since_;
}

void SlurmQueue::soon() {
  const auto now = Clock::now();
  soon_until_ = now + impatience;
  next_ = std::min(next_, now + often);
}

void SlurmQueue::ask_now(std::chrono::seconds at_most) {
  const auto deadline = Clock::now() + at_most;
  do {
    if (!asking_) ask();
    if (const auto answer = asking_->wait(duration_cast<milliseconds>(deadline - Clock::now())))
      take(*answer);
    else
      break;
    if (trouble_.empty()) return;
    ::usleep(500'000);
  } while (Clock::now() < deadline);
  asking_.reset();
  throw UserError("Slurm does not answer: " + (trouble_.empty() ? "squeue takes too long" : trouble_),
                  "check that `squeue` works here, then run the same command again");
}

std::optional<SlurmState> SlurmQueue::find(const std::string& name) const {
  const auto found = jobs_.find(name);
  return found == jobs_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace trainyard::orchestrator
