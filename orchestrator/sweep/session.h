// A session trains the pending runs of an experiment. Steps: journal, recovery, plan, host, launcher, sweep.
// - The journal comes first, so that it has every request before any work for it.
// - Recovery comes before the plan. Otherwise the plan could train finished runs again.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "experiments/design/experiment.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/resources/device_leases.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/resources/shared_lock.h"
#include "orchestrator/sweep/sweep.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// The machine as planning needs it.
struct Machine {
  Programs programs;
  experiments::Circumstances circumstances;
  std::vector<Device> devices;
};

struct SweepRequest {
  experiments::Experiment experiment;  // with the data and keys of all runs
  Machine machine;
  std::string command;   // in the locks: "trainyard run first.toml"
  nlohmann::json asked;  // options in addition to the file, for the journal (`journal.h`)
  PlanOptions plan;
  SweepOptions sweep;
  bool no_wait = false;  // fail if another sweep has the host or its devices
};

class Session {
 public:
  using OnMessage = std::function<void(const std::string& line)>;

  // Takes the steps from journal to plan. Keeps references to the request and to the lock of the yard.
  // - Calls `on_message` with lines for the user.
  // - UserError if `no_wait` is set and another sweep is in the way. Then the journal has no entry.
  Session(const SweepRequest& request, Yard yard, const YardLock& lock, OnMessage on_message);

  const Plan& plan() const { return plan_; }
  const db::Database& database() const { return database_; }

  // Takes the steps from host to sweep. Empty if `stop` was set while it waited for the host.
  std::optional<SweepResult> run(Status& status, const std::atomic<int>& stop);

 private:
  Plan planned(const std::vector<LiveAttempt>& live) const;
  void add_to_journal(const nlohmann::json& entry);
  void journal_request();
  void journal_replaced_results();
  std::vector<LiveAttempt> recovered();
  bool needs_devices(const Plan& plan) const;
  bool needs_host(const Plan& plan) const;
  DeviceLeases& new_leases();
  void take_host_now(const Plan& plan);
  bool wait_for_host(const std::atomic<int>& stop);
  void report_waiting(const std::string& what, const std::string& why) const;

  const SweepRequest& request_;
  Yard yard_;
  const YardLock& lock_;
  OnMessage on_message_;
  db::Database database_;
  std::unique_ptr<Launcher> launcher_;
  std::optional<SharedLock> host_lock_;  // only for timed sweeps
  std::optional<DeviceLeases> leases_;
  Plan plan_;
};

}  // namespace trainyard::orchestrator
