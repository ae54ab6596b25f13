// Slurm jobs: one job from submission to end, and the queue as the controller reports it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/protocol/end_reason.h"
#include "orchestrator/rank/process.h"

namespace trainyard::orchestrator {

// One line of the queue.
struct SlurmState {
  std::string id;      // "4711", or "4711.3" for a step
  std::string state;   // "RUNNING"; always this for a step
  std::string reason;  // why it waits or ended: "Resources", "NodeDown"; may be "None"
};

bool waits(const SlurmState& job);     // in the queue: PENDING, CONFIGURING, REQUEUED …
bool ended(const SlurmState& job);     // nothing of it runs: COMPLETED, CANCELLED, NODE_FAIL …
bool lost_job(const SlurmState& job);  // ended by the cluster: node failure or preemption

// Jobs by name, from the output of squeue --format=%i|%T|%r|%j. Other lines are ignored. If two jobs have the
// same name, the live one counts.
std::map<std::string, SlurmState> parse_squeue(const std::string& text);

// Our jobs as Slurm's controller reports them. `squeue` is called from time to time, once for all jobs.
// - Jobs are found by name. A name is unique and the same after a restart.
// - If the controller does not answer, the last answer stays, and nothing is concluded from its age.
class SlurmQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // `steps_of`: lists the steps of this job instead of jobs.
  explicit SlurmQueue(std::string steps_of = "") : steps_of_(std::move(steps_of)) {}

  void step();  // queries if it is due, reads the answer; never blocks
  void soon();  // a change is expected: query more often for a while
  void cancel(const std::vector<std::string>& arguments);  // of scancel, which runs in the background
  // Queries and waits. UserError if the controller does not answer in time.
  void ask_now(std::chrono::seconds at_most);

  std::optional<SlurmState> find(const std::string& name) const;  // as of the last answer
  // Time of the last query that was answered. min() = never.
  Clock::time_point answered_at() const { return answered_at_; }

  // Limits simultaneous submissions, because the controller serves others too.
  bool may_submit() const { return submitting_ < 4; }
  void submission(int change) { submitting_ += change; }

 private:
  void ask();
  void take(const ClientAnswer& answer);

  std::string steps_of_;
  std::map<std::string, SlurmState> jobs_;
  std::unique_ptr<ClientCommand> asking_;
  std::vector<std::unique_ptr<ClientCommand>> cancelling_;
  Clock::time_point answered_at_ = Clock::time_point::min(), asking_since_, next_, soon_until_;
  std::string trouble_;  // why the last query failed; empty: it did not
  int submitting_ = 0;
};

// Command line of a Slurm client without SLURM_* and SQUEUE_* variables, which would change its behaviour.
std::vector<std::string> slurm_client(const std::string& program, const std::vector<std::string>& arguments);

// One Slurm job, from submission to end: a state machine that `step` drives. If the answer to a submission is
// lost, the job is looked up by its name before it is submitted again.
class SlurmJob {
 public:
  enum class Stage { submitting, queued, running, over };

  // `submit`: arguments of sbatch. Empty: the job is in the queue already, and `queue` has just been asked.
  SlurmJob(SlurmQueue& queue, std::string name, std::vector<std::string> submit);
  ~SlurmJob();
  SlurmJob(const SlurmJob&) = delete;
  SlurmJob& operator=(const SlurmJob&) = delete;

  void step();
  Stage stage() const { return stage_; }
  const std::string& id() const { return id_; }
  // Once it is over: its state in Slurm, as "NODE_FAIL (NodeDown)".
  const std::string& why() const { return why_; }
  // Once it is over. not_started: refused. stopped: cancelled, perhaps by us. Empty: it ended by itself.
  std::optional<experiments::EndReason> reason() const { return reason_; }

  void signal(int number);  // to its tasks; a waiting job is cancelled. SIGKILL ends all of it
  void cancel();            // all of it, waiting or running
  // Its ranks have begun, which `squeue` may have missed. If a later answer lists the job as waiting, it was
  // requeued.
  void note_begun();
  void detach() { stage_ = Stage::over; }  // it is about to end by itself

 private:
  using Clock = SlurmQueue::Clock;
  void submit();
  void submitted(const ClientAnswer& answer);
  void read_queue();
  void note_end(const SlurmState& job);

  SlurmQueue& queue_;
  std::string name_;
  std::vector<std::string> submit_;
  Stage stage_ = Stage::submitting;
  std::string id_, why_;
  std::optional<experiments::EndReason> reason_;
  bool requeued_ = false;
  bool cancel_later_ = false;  // cancelled before it was submitted
  std::unique_ptr<ClientCommand> sbatch_;
  Clock::time_point begun_by_ = Clock::time_point::max();
  Clock::time_point known_since_, try_again_, give_up_;
};

}  // namespace trainyard::orchestrator
