// Jobs of Slurm: one job from submission to end, and the queue as the controller reports it.
//
// One job of Slurm's, from its submission to its end: a state machine that `step` drives. Its name is ours
// and says whether it was submitted: a submission whose answer was lost is looked up before it is repeated.
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

// What Slurm's controller says of our jobs: `squeue` asked from time to time, once for all of them. Jobs are
// known by name, which is ours alone and the same after a restart. A controller that is away for a while is
// waited for: then answers grow old, and nothing is concluded from them.

struct SlurmState {
  std::string id;      // "4711", or "4711.3" of a step
  std::string state;   // "RUNNING"; of a step always that
  std::string reason;  // why it waits or ended: "Resources", "NodeDown"; may be "None"
};

bool waits(const SlurmState& job);     // in the queue: PENDING, CONFIGURING, REQUEUED …
bool ended(const SlurmState& job);     // nothing of it runs: COMPLETED, CANCELLED, NODE_FAIL …
bool lost_job(const SlurmState& job);  // ended by nobody's wish: its node failed, it was preempted

// Of squeue --format=%i|%T|%r|%j; by name. What is no such line is left out. Of two jobs of a name the live
// one counts.
std::map<std::string, SlurmState> parse_squeue(const std::string& text);

// How a job ended, of `sacct` with these arguments: state, and exit code or signal as the reason. Nothing
// where it is not among the lines, or has not ended.
std::vector<std::string> sacct_arguments(const std::string& job_id);
std::optional<SlurmState> parse_sacct(const std::string& text, const std::string& job_id);

class SlurmQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // `steps_of`: asks for the steps of that job instead of jobs.
  explicit SlurmQueue(std::string steps_of = "");

  void step();  // asks where it is time, takes the answer; never blocks
  void soon();  // somebody waits for a change: ask more often for a while
  // Asks and waits; UserError where the controller does not answer in time.
  void ask_now(std::chrono::seconds at_most);

  std::optional<SlurmState> find(const std::string& name) const;  // as of the last answer
  Clock::time_point asked() const {
    return asked_;
  }  // when what was answered last had been asked; min() = never

  // Submissions under way are few at a time: the controller serves others too.
  bool may_submit() const { return submitting_ < 4; }
  void submission(int change) { submitting_ += change; }

 private:
  void ask();
  void take(const ClientAnswer& answer);

  std::string steps_of_;
  std::map<std::string, SlurmState> jobs_;
  std::unique_ptr<ClientCommand> asking_;
  Clock::time_point asked_ = Clock::time_point::min(), asking_since_, next_, soon_until_;
  std::string trouble_;  // why the last question had no answer; empty: it had
  int submitting_ = 0;
};

// A client of Slurm's without the variables of an allocation that this process may run in, or of the user's
// habits: they would change what it does.
std::vector<std::string> slurm_client(const std::string& program, const std::vector<std::string>& arguments);

class SlurmJob {
 public:
  enum class Stage { submitting, queued, running, over };

  // `submit`: the arguments of sbatch. Empty: it is in the queue already, and `queue` has just been asked.
  SlurmJob(SlurmQueue& queue, std::string name, std::vector<std::string> submit);
  ~SlurmJob();
  SlurmJob(const SlurmJob&) = delete;
  SlurmJob& operator=(const SlurmJob&) = delete;

  void step();
  Stage stage() const { return stage_; }
  const std::string& id() const { return id_; }
  // Once it is over: what Slurm says of it. "cancelled", "NODE_FAIL (NodeDown)".
  const std::string& why() const { return why_; }
  bool completed() const { return why_.starts_with("COMPLETED"); }
  // Once it is over. not_started: refused; stopped: cancelled, perhaps by us; empty: it ended by itself
  std::optional<experiments::EndReason> reason() const { return reason_; }

  void signal(int number);  // to what runs of it; ends it where it still waits. SIGKILL ends all of it
  void cancel();            // all of it, waiting or not
  // Its ranks have begun, which the queue was perhaps not asked in time to say: where a later answer has it
  // waiting, it was requeued.
  void note_begun();
  void let_go() { stage_ = Stage::over; }  // it is about to end by itself

 private:
  using Clock = SlurmQueue::Clock;
  void submit();
  void submitted(const ClientAnswer& answer);
  void look();
  void note_end(const SlurmState& job);
  void ask_accounts();
  void tell(const std::vector<std::string>& arguments);

  SlurmQueue& queue_;
  std::string name_;
  std::vector<std::string> submit_;
  Stage stage_ = Stage::submitting;
  std::string id_, why_;
  std::optional<experiments::EndReason> reason_;
  bool requeued_ = false;
  bool cancel_later_ = false;  // told to end before it was submitted
  std::unique_ptr<ClientCommand> sbatch_, sacct_;
  std::vector<std::unique_ptr<ClientCommand>> telling_;
  Clock::time_point begun_by_ = Clock::time_point::max();
  Clock::time_point known_since_, try_again_, give_up_, accounts_since_;
};

}  // namespace trainyard::orchestrator
