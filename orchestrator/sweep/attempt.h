// One attempt at a run: writes its run file, launches its ranks, has them watched, collects their records,
// and says how it went.
//
// The sweep drives it by `step()` from its one thread. What happens is appended to the attempt's
// orchestrator.records.jsonl first and ingested from there. Destroying it kills what is left of it.
#pragma once

#include <chrono>
#include <optional>
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
  // Writes run.json and launches; a rank that cannot be started makes it fail.
  Attempt(Assignment assignment, Workplace workplace);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  bool step();                                            // false once everything is over
  void stop(int level) { ranks_.stop(level); }            // 1: SIGTERM, grace, SIGKILL; 2: SIGKILL at once
  const RunOutcome& outcome() const { return outcome_; }  // once over
  const PlannedRun& planned() const { return assignment_.planned; }
  void add_end_fds(std::vector<int>& fds) const { ranks_.add_end_fds(fds); }

 private:
  using Clock = std::chrono::steady_clock;

  AttemptPlace make_place() const;
  ResumePoint resume_point() const;
  nlohmann::json run_file() const;
  void launch();
  void adopt();
  void tell_where_it_begins();
  void log_launch(const char* event, const nlohmann::ordered_json& marks) const;
  void follow();
  void tell_messages();
  void finish(const RankGroupEnd& group);
  void end_leftovers();
  void end_at_once();
  void record_other_use();
  AttemptEvidence evidence(const RankGroupEnd& group) const;
  std::optional<RankError> fault_of_records() const;
  void conclude(const AttemptEnd& end, const std::vector<RankFailure>& failures);

  Assignment assignment_;
  Workplace workplace_;
  AttemptPlace place_;
  ResumePoint begins_;
  std::string token_;
  Collector collector_;
  AttemptLog log_;
  RankSupervisor ranks_;
  std::optional<ProcessorTimes> before_launch_;  // of a run whose times may count, on this host
  Clock::time_point next_follow_, next_progress_;
  RunOutcome outcome_;
};

}  // namespace trainyard::orchestrator
