// What Slurm's controller says of our jobs: `squeue` asked from time to time, once for all of them. Jobs are
// known by name, which is ours alone and the same after a restart. A controller that is away for a while is
// waited for: then answers grow old, and nothing is concluded from them.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "orchestrator/rank/client_command.h"

namespace trainyard::orchestrator {

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

}  // namespace trainyard::orchestrator
