// What is left to run: the experiment's runs less those finished under the same circumstances.
#pragma once

#include <cstdint>
#include <optional>
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
  left_out         // not asked for this time
};

struct PlannedRun {
  experiments::Run run;
  std::string key;
  PlanState state = PlanState::to_run;
  std::vector<Device> devices;  // of each rank
  bool devices_shared = false;  // more ranks than devices, or than there are cores for their threads
  experiments::Circumstances circumstances;
  bool probe = false;                      // two of its steps are held against the virtual mesh first
  std::optional<int> adopts;               // an attempt of an earlier sweep that is still under way
  std::optional<double> expected_seconds;  // from finished runs of the same kind
  std::string
      times_problem;  // it is finished, its times do not count, and would if it were trained again: why
};

struct Plan {
  std::vector<PlannedRun> runs;                    // in the file's order
  std::vector<std::size_t> order;                  // in which they are run: indices of all of them
  std::vector<Device> devices;                     // all there are to lease: GPUs, cores, or slots
  bool reuse = false;                              // what was done elsewhere is not run again
  bool one_at_a_time = true;                       // no run starts beside another
  bool placed_by_launcher = false;                 // ranks have no devices of this host; a run takes one slot
  bool waits(const PlannedRun& run) const;         // it is to be run
  std::size_t to_run() const;                      // number of those
  std::optional<double> expected_seconds() const;  // of all to run; empty where one kind is unknown
};

// paired: the arms of a pair (runs that differ in what is compared only) stand next to each other, in an
// order drawn from the file's `data_seed`, so that neither slow changes of the machine nor the place after
// another arm favour one of them. Pairs are in the file's order. declared: the file's order.
enum class Order { paired, declared };

struct PlanOptions {
  Order order = Order::paired;
  bool reuse = false;          // else done_elsewhere runs are run again
  bool retrain_times = false;  // finished runs with a `times_problem` are run again
  bool failed_only = false;    // other runs are left out
};

// An attempt of an orchestrator that has ended, whose ranks go on without it: a job of a cluster.
struct LiveAttempt {
  std::string key;
  int attempt = 0;
};

// `database` may be null: nothing has run yet. A run whose attempt is `live` continues with it.
// Nobody changes a plan later.
Plan make_plan(const experiments::Experiment& experiment, const std::vector<Device>& devices,
               const experiments::Circumstances& machine, const db::Database* database,
               const PlanOptions& options = {}, const std::vector<LiveAttempt>& live = {});

// Indices of the runs that wait, in the order in which they are run.
std::vector<std::size_t> execution_order(const Plan& plan);

// "mlp ddp 10 mnist all": model, strategy, epochs, data set and the cap on its training part, as
// `db::median_run_seconds` has them; runs of a kind take about the same time.
std::string kind_of(const experiments::Run& run);

// How many different devices these are.
std::size_t distinct_devices(const std::vector<Device>& devices);

// Chooses the runs of the parity check (runner/parity/parity_check.h): sets `probe` of the runs that wait.
// - For each arm and cell it is the first seed that is run, unless another seed was checked here before.
// - A program of the user's cannot be checked. Independent runs are single ones.
void choose_probes(Plan& plan, const db::Database& database);

}  // namespace trainyard::orchestrator
