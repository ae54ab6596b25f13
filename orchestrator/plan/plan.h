// Plan of a sweep: which runs of an experiment are left, their order, and their devices.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/database/database.h"
#include "experiments/design/experiment.h"
#include "experiments/protocol/launch.h"
#include "orchestrator/resources/devices.h"

namespace trainyard::orchestrator {

enum class PlanState {
  to_run,
  finished,
  done_elsewhere,  // finished under other circumstances
  left_out,        // not selected this time
  not_needed       // its cells are decided, or more seeds would not decide them
};

struct PlannedRun {
  experiments::Run run;
  std::string key;
  PlanState state = PlanState::to_run;
  std::vector<Device> devices;  // one per rank of the next attempt
  bool devices_shared = false;  // more ranks than devices, or more threads than cores
  experiments::Circumstances circumstances;
  bool probe = false;                                 // the parity check comes first
  std::optional<int> adopts;                          // attempt of an earlier sweep that is still running
  std::optional<experiments::Membership> membership;  // of an elastic run with fewer replicas: membership.h
  std::optional<double> expected_seconds;             // from finished runs of the same kind
  // Why the times of a finished run do not count, if training it again would help. Else empty.
  std::string times_problem;
};

struct Plan {
  std::vector<PlannedRun> runs;             // in the order of the file
  std::vector<std::size_t> order;           // indices of all runs, in the order of execution
  std::vector<Device> devices;              // all that runs can lease: GPUs, cores or slots
  bool reuse = false;                       // `done_elsewhere` runs are not run again
  bool one_at_a_time = true;                // runs never overlap
  bool until_decided = false;               // more runs may turn out not to be needed
  bool placed_by_launcher = false;          // ranks use no devices of this host, and each run leases one slot
  bool waits(const PlannedRun& run) const;  // whether the sweep will run it
  std::size_t to_run() const;               // number of runs that wait
  std::size_t in_state(PlanState state) const;
  std::size_t finished_before() const;             // number of runs that finished, and do not wait
  std::optional<double> expected_seconds() const;  // of all runs that wait; empty if one kind is unknown
};

// Order of execution.
// - paired: the arms of a pair run directly after one another, in an order drawn from `data_seed`. So neither
//   slow changes of the machine nor the position favour an arm. Pairs are in the order of the file.
// - declared: the order of the file.
enum class Order { paired, declared };

struct PlanOptions {
  Order order = Order::paired;
  bool reuse = false;          // if false, `done_elsewhere` runs are run again
  bool retrain_times = false;  // finished runs with a `times_problem` are run again
  bool failed_only = false;    // other runs are left out
};

// Attempt whose orchestrator has ended while its ranks still run, as a job on a cluster.
struct LiveAttempt {
  std::string key;
  int attempt = 0;
};

// Makes the plan. It is never changed later.
// - `database`: null if nothing has run yet
// - `live`: attempts that their runs continue with
Plan make_plan(const experiments::Experiment& experiment, const std::vector<Device>& devices,
               const experiments::Circumstances& machine, const db::Database* database,
               const PlanOptions& options = {}, const std::vector<LiveAttempt>& live = {});

// Which runs are still needed, if cells get seeds until they are decided.
struct Needed {
  std::map<std::string, std::size_t> order;  // by run key: smaller numbers first; others have 0
  std::set<std::string> unneeded;            // run keys
  std::set<std::string> untimed;     // run keys: their times are not needed, so they can train side by side
  std::set<std::string> lack_times;  // run keys: finished without times that are needed now
  std::string progress;              // "3 of 12 cells need no more seeds"
};

// Marks the runs that wait and are not needed. Finished runs are complete if nobody needs their missing times. From now
// on the number of runs is an upper limit.
void leave_out_unneeded(Plan& plan, const Needed& needed);

// Indices of the runs that wait, in the order of execution.
std::vector<std::size_t> execution_order(const Plan& plan);

// Chooses the runs of the parity check (runner/parity/parity_check.h): sets `probe` of the runs that wait.
// - For each arm and cell it is the first seed that is run, unless another seed was checked here before.
// - A user's own program cannot be checked. `independent` needs no check of its own: it repeats `single`.
void choose_probes(Plan& plan, const db::Database& database);

}  // namespace trainyard::orchestrator
