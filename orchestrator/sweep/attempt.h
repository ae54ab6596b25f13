// One attempt at a run: writes its run file, launches its ranks, watches them, collects their records, ends
// all of them when one has died or when it is told to stop, and says how it went.
//
// A state machine that the sweep drives by `step()` from its one thread. What happens is appended to the
// attempt's orchestrator.records.jsonl first and ingested from there. Destroying it kills what is left of it.
// Three files: `attempt.cpp` watches, `attempt_launch.cpp` has the launch contract, `attempt_end.cpp` says
// how it went and why.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "db/ingest/attempt_fault.h"
#include "db/ingest/ingest.h"
#include "experiments/protocol/record.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/resume_point.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/sweep/collector.h"
#include "orchestrator/sweep/sweep.h"
#include "orchestrator/sweep/watchdog.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// What an attempt works with; the sweep owns all of it.
struct Workplace {
  const Yard& yard;
  const std::string& experiment;  // its name
  const db::Database& database;
  db::Ingest& ingest;
  const Programs& programs;
  Launcher& launcher;
  Status& status;
  const SweepOptions& options;
};

class Attempt {
 public:
  // `devices`: of each rank, as leased. Writes run.json and launches; a rank that cannot be started makes it
  // fail. `retries_left`: how many attempts may follow it. `adopts`: goes on with that attempt, which an
  // earlier orchestrator launched and left.
  Attempt(const PlannedRun& planned, std::vector<Device> devices, bool host_exclusive, Workplace workplace,
          int retries_left, std::optional<int> adopts = {});
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  bool step();           // false once everything is over
  void stop(int level);  // 1: SIGTERM, grace, SIGKILL; 2: SIGKILL at once
  const PlannedRun& planned() const { return planned_; }
  const std::vector<Device>& devices() const { return devices_; }
  const RunOutcome& outcome() const { return outcome_; }  // once over
  void add_end_fds(std::vector<int>& fds) const;          // of ranks that run: see `RankProcess::end_fd`

 private:
  using Clock = std::chrono::steady_clock;

  // A rank that ended badly before anyone told it to end, in order of being seen.
  struct RankFailure {
    int rank = 0;
    ExitStatus status;
  };

  // It ended well, and its last records have not come yet.
  struct PendingExit {
    RankFailure death;
    Clock::time_point until;
  };

  // Makes the attempt's folder.
  static AttemptPlace new_place(const Workplace& workplace, const PlannedRun& planned);
  static AttemptPlace old_place(const Yard& yard, const PlannedRun& planned, int attempt);
  nlohmann::json old_run_file() const;
  ResumePoint resume_point() const;
  nlohmann::json write_run_file() const;
  experiments::Launch launch() const;
  RankCommand rank_command(int rank) const;
  void start();
  void tell_where_it_begins();
  void end_at_once();
  void launch_ranks();
  void log_launch(const char* event, const nlohmann::ordered_json& marks) const;
  void adopt_ranks();
  bool foreign() const;  // its ranks are a program of the user's
  std::vector<int> leased_cores() const;
  void record_other_use();
  void open_records();
  void record(const std::string& type, const nlohmann::ordered_json& body);
  void poll_ranks();
  void note_exit(std::size_t rank, const ExitStatus& status);
  void note_death(int rank, const ExitStatus& status);
  void follow();
  void look_for_life();
  void note_job();
  void tell_messages();
  // What the log says of every event of it.
  log::Fields logged(log::Fields more = {}) const;
  void end_ranks(const std::string& why, double after_seconds);
  void enforce();
  void signal_all(int number, const std::string& why);
  bool all_ended() const;
  std::optional<RankGroupEnd> gang_end();
  bool records_may_come();
  void finish(const RankGroupEnd& end);
  void succeed();
  void run_out_of_time(const std::string& why);
  void fail(std::optional<int> rank, const std::string& error);
  void fail_by(const RankFailure& death);
  void fail_by_record(const db::AttemptFault& fault);
  std::optional<int> first_dead() const;
  void interrupt(const std::string& why);
  std::string first_error(const RankFailure& death) const;
  const RankFailure& cause() const;
  std::filesystem::path rank_log(int rank) const;
  double seconds() const;

  const PlannedRun& planned_;
  std::vector<Device> devices_;
  bool host_exclusive_;
  int retries_left_;
  Workplace workplace_;
  AttemptPlace place_;
  std::filesystem::path run_file_;
  ResumePoint begins_;
  std::string token_;
  Clock::time_point started_ = Clock::now();
  Collector collector_;
  std::optional<experiments::RecordWriter> records_;
  std::unique_ptr<RankGroup> gang_;               // null where it could not be launched
  std::optional<ProcessorTimes> before_launch_;   // of a run whose times may count, on this host
  std::vector<std::optional<ExitStatus>> ended_;  // by rank
  std::vector<RankFailure> deaths_;
  std::vector<PendingExit> unheard_;
  std::string launch_error_, hang_error_;
  Watchdog life_;
  std::optional<Clock::time_point> terminate_at_, kill_at_;
  std::string ending_why_;
  bool adopted_ = false;  // an earlier orchestrator launched it
  bool terminated_ = false, killed_ = false, stopped_ = false, over_ = false;
  std::string job_;  // its number, once it is known
  Clock::time_point next_follow_, next_progress_, next_look_;
  RunOutcome outcome_;
};

}  // namespace trainyard::orchestrator
