#include "orchestrator/launch/slurm_job.h"

#include <algorithm>
#include <csignal>

namespace trainyard::orchestrator {

namespace {

constexpr const char* requeued = "it was requeued";
constexpr auto controller_patience = std::chrono::minutes(10);  // for one that does not answer
constexpr auto accounts_patience = std::chrono::seconds(10);
constexpr auto between_tries = std::chrono::seconds(2);

// "4711" or "4711;cluster" among what else sbatch may say.
std::string job_id(const std::string& text) {
  std::string id;
  for (const std::string& line : lines_of(text)) {
    const std::string first = line.substr(0, line.find(';'));
    if (!first.empty() && first.find_first_not_of("0123456789") == std::string::npos) id = first;
  }
  return id;
}

// The controller is away, busy, or takes no more jobs for now; all else will not change by waiting.
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
  known_since_ = queue_.asked();
  look();
}

// Whoever drops a job that is not over wants it gone.
SlurmJob::~SlurmJob() {
  if (sbatch_) queue_.submission(-1);
  if (stage_ == Stage::over || stage_ == Stage::refused || (stage_ == Stage::submitting && !sbatch_)) return;
  const std::string which = id_.empty() ? "--name=" + name_ : id_;
  try {
    ClientCommand(slurm_client("scancel", {which})).wait(std::chrono::seconds(5));
  } catch (const std::exception&) {  // a destructor can do no more
  }
}

void SlurmJob::step() {
  std::erase_if(telling_, [](const auto& command) { return command->poll().has_value(); });
  if (stage_ == Stage::submitting) submit();
  if (stage_ == Stage::queued || stage_ == Stage::running) look();
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
  if (try_again_ != Clock::time_point()) {  // it may have arrived all the same
    queue_.soon();
    if (queue_.asked() < try_again_ - between_tries) return;
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
    stage_ = Stage::refused;
    why_ = "sbatch: " + complaint(answer);
  }
}

void SlurmJob::look() {
  if (queue_.asked() < known_since_) return;
  const auto job = queue_.find(name_);
  if (!job) return ask_accounts();
  sacct_.reset();
  id_ = job->id;
  if (ended(*job)) return note_end(*job);
  const bool waiting = waits(*job);
  if (waiting && queue_.asked() > begun_by_ &&
      !lost_) {  // it would write into the records of its first start
    lost_ = true;
    cancel();
  }
  if (!waiting) begun_by_ = std::min(begun_by_, queue_.asked());
  if (!lost_) stage_ = waiting ? Stage::queued : Stage::running;
}

void SlurmJob::note_begun() {
  begun_by_ = std::min(begun_by_, Clock::now());
}

// It has left the queue. Where the cluster keeps accounts, they say how it ended.
void SlurmJob::ask_accounts() {
  if (!sacct_ && !id_.empty()) {
    accounts_since_ = Clock::now();
    sacct_ = std::make_unique<ClientCommand>(slurm_client("sacct", sacct_arguments(id_)));
  }
  const auto answer = sacct_ ? sacct_->poll() : std::nullopt;
  if (sacct_ && !answer && Clock::now() - accounts_since_ < accounts_patience) return;
  const auto kept = answer && answer->status.clean() ? parse_sacct(answer->text, id_) : std::nullopt;
  sacct_.reset();
  if (kept) return note_end(*kept);
  stage_ = Stage::over;
  why_ = lost_ ? requeued : "Slurm does not know the job any more";
}

void SlurmJob::note_end(const SlurmState& job) {
  stage_ = Stage::over;
  why_ = lost_ ? requeued : job.state + (job.reason == "None" ? "" : " (" + job.reason + ")");
  lost_ = lost_ || lost_job(job);
  cancelled_ = job.state == "CANCELLED";
  timed_out_ = job.state == "TIMEOUT";
  over_limits_ = job.state == "OUT_OF_MEMORY";
}

void SlurmJob::signal(int number) {
  if (stage_ == Stage::submitting) cancel_later_ = true;
  if (id_.empty() || stage_ == Stage::over || stage_ == Stage::refused) return;
  queue_.soon();
  if (stage_ == Stage::queued) return cancel();
  tell({"--signal=" + std::to_string(number), id_});
  if (number == SIGKILL) tell({id_});
}

void SlurmJob::cancel() {
  tell({id_});
  queue_.soon();
}

void SlurmJob::tell(const std::vector<std::string>& arguments) {
  telling_.push_back(std::make_unique<ClientCommand>(slurm_client("scancel", arguments)));
}

}  // namespace trainyard::orchestrator
