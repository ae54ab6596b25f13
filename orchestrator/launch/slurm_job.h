// One job of Slurm's, from its submission to its end: a state machine that `step` drives. Its name is ours
// and says whether it was submitted: a submission whose answer was lost is looked up before it is repeated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "orchestrator/launch/slurm_queue.h"

namespace trainyard::orchestrator {

class SlurmJob {
 public:
  enum class Stage { submitting, queued, running, over, refused };

  // `submit`: the arguments of sbatch. Empty: it is in the queue already, and `queue` has just been asked.
  SlurmJob(SlurmQueue& queue, std::string name, std::vector<std::string> submit);
  ~SlurmJob();
  SlurmJob(const SlurmJob&) = delete;
  SlurmJob& operator=(const SlurmJob&) = delete;

  void step();
  Stage stage() const { return stage_; }
  const std::string& id() const { return id_; }
  // Once it is over or refused: what Slurm says of it. "cancelled", "NODE_FAIL (NodeDown)".
  const std::string& why() const { return why_; }
  bool lost() const { return lost_; }            // ended by nobody's wish
  bool cancelled() const { return cancelled_; }  // by somebody
  bool completed() const { return why_.starts_with("COMPLETED"); }
  bool timed_out() const { return timed_out_; }      // at its time limit
  bool over_limits() const { return over_limits_; }  // it took more memory than it may

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
  bool lost_ = false, cancelled_ = false, timed_out_ = false, over_limits_ = false;
  bool cancel_later_ = false;  // told to end before it was submitted
  std::unique_ptr<ClientCommand> sbatch_, sacct_;
  std::vector<std::unique_ptr<ClientCommand>> telling_;
  Clock::time_point begun_by_ = Clock::time_point::max();
  Clock::time_point known_since_, try_again_, give_up_, accounts_since_;
};

}  // namespace trainyard::orchestrator
