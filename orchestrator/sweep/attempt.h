// One attempt of a run: writes its run file, launches its ranks, supervises them, and collects their records.
//
// - The sweep calls `step()` from its only thread.
// - Events are first appended to orchestrator.records.jsonl of the attempt, then ingested from there.
// - The destructor kills the processes that are left.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/ingest/ingest.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/plan/resume_point.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/sweep/attempt_launch.h"
#include "orchestrator/sweep/attempt_log.h"
#include "orchestrator/sweep/rank_supervisor.h"
#include "orchestrator/sweep/sweep.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// Services that an attempt uses. The sweep owns them.
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
  // Writes run.json and launches the ranks. If a rank cannot be started, the attempt has failed.
  Attempt(Assignment assignment, Workplace workplace);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  bool step();                                            // false once the attempt is over
  void stop(int level) { ranks_.stop(level); }            // 1: SIGTERM, grace, SIGKILL; 2: SIGKILL at once
  const RunOutcome& outcome() const { return outcome_; }  // once the attempt is over
  const PlannedRun& planned() const { return assignment_.planned; }

 private:
  using Clock = std::chrono::steady_clock;

  AttemptPlace make_place() const;
  ResumePoint resume_point() const;
  nlohmann::json run_file() const;
  void launch();
  void adopt();
  void report_start();
  void log_launch(const char* event, const nlohmann::ordered_json& marks) const;
  void follow();
  void report_messages();
  void note_over_limits();
  void shorten_logs();
  void finish(const RankGroupEnd& group);
  void shrink_retry(const AttemptEvidence& seen);
  void end_leftovers(int ended);
  void end_at_once();
  void record_other_use();
  void report_times_problem() const;
  void note_changed_file();
  AttemptEvidence evidence(const RankGroupEnd& group) const;
  std::optional<AttemptEnd> fault_of_records() const;
  void conclude(const AttemptEnd& end, const std::vector<RankFailure>& failures);

  Assignment assignment_;
  Workplace workplace_;
  AttemptPlace place_;
  ResumePoint begins_;
  std::string token_;
  Collector collector_;
  AttemptLog log_;
  RankSupervisor ranks_;
  std::optional<EpochUse> other_use_;  // if its times may count and it runs on this host
  std::size_t noted_limits_ = 0;       // of those that were exceeded
  std::set<int> shortened_;            // ranks whose logs were
  std::string changed_;                // a declared file that changed while the ranks ran
  Clock::time_point next_follow_, next_progress_;
  RunOutcome outcome_;
};

}  // namespace trainyard::orchestrator
