// One attempt at a run: writes its run file, launches its ranks, watches them, collects their records, ends
// all of them when one has died or when it is told to stop, and says how it went.
//
// A state machine that the sweep drives by `step()` from its one thread. What happens is appended to the
// attempt's orchestrator.records.jsonl first and ingested from there. Destroying it kills what is left of it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/record_writer.h"
#include "orchestrator/collector.h"
#include "orchestrator/launcher.h"
#include "orchestrator/plan.h"
#include "orchestrator/programs.h"
#include "orchestrator/status.h"
#include "orchestrator/store.h"
#include "orchestrator/sweep.h"
#include "orchestrator/yard.h"

namespace trainyard::orchestrator {

// What an attempt works with; the sweep owns all of it.
struct Workplace {
  const Yard& yard;
  const std::string& experiment;  // its name
  db::Database& database;
  db::Ingest& ingest;
  const Programs& programs;
  Launcher& launcher;
  StoreProcess& store;
  Status& status;
  const SweepOptions& options;
};

class Attempt {
 public:
  // `devices`: of each rank, as leased. Writes run.json and launches; a rank that cannot be started makes it
  // fail.
  Attempt(const PlannedRun& planned, std::vector<Device> devices, bool host_exclusive, Workplace workplace);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  bool step();           // false once everything is over
  void stop(int level);  // 1: SIGTERM, grace, SIGKILL; 2: SIGKILL at once
  const PlannedRun& planned() const { return planned_; }
  const std::vector<Device>& devices() const { return devices_; }
  const RunOutcome& outcome() const { return outcome_; }  // once over

 private:
  using Clock = std::chrono::steady_clock;

  struct Rank {
    std::unique_ptr<RankProcess> process;
    std::optional<ExitStatus> ended;
  };
  // A rank that ended badly before anyone told it to end, in order of being seen.
  struct Death {
    int rank = 0;
    ExitStatus status;
  };

  experiments::Launch launch() const;
  RankCommand command(int rank, const StoreAddress& store) const;
  void start();
  void launch_ranks();
  void record(const std::string& type, const nlohmann::ordered_json& body);
  void poll_ranks();
  void note_exit(int rank, const ExitStatus& status);
  void follow();
  void enforce();
  void signal_all(int number, const std::string& why);
  bool all_ended() const;
  void finish();
  void fail(std::optional<int> rank, const std::string& error);
  void interrupt();
  std::string first_error(const Death& death) const;
  const Death& cause() const;
  std::filesystem::path log(int rank) const;
  double seconds() const;

  const PlannedRun& planned_;
  std::vector<Device> devices_;
  bool host_exclusive_;
  Workplace workplace_;
  AttemptPlace place_;
  std::filesystem::path run_file_;
  Clock::time_point started_ = Clock::now();
  Collector collector_;
  std::optional<experiments::RecordWriter> records_;
  std::vector<Rank> ranks_;
  std::vector<Death> deaths_;
  std::string launch_error_;
  std::optional<Clock::time_point> terminate_at_, kill_at_;
  std::string ending_why_;
  bool terminated_ = false, killed_ = false, stopped_ = false, over_ = false;
  Clock::time_point next_follow_ = Clock::now(), next_progress_ = Clock::now();
  RunOutcome outcome_;
};

}  // namespace trainyard::orchestrator
