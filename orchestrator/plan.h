// What is left to run: the experiment's runs less those finished under the same circumstances.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/database.h"
#include "experiments/file.h"
#include "experiments/launch.h"
#include "orchestrator/devices.h"

namespace trainyard::orchestrator {

enum class PlanState {
  to_run,
  finished,
  done_elsewhere
};  // done_elsewhere: finished under other circumstances

struct PlannedRun {
  experiments::Run run;
  std::string key;
  PlanState state = PlanState::to_run;
  std::vector<Device> devices;  // of each rank
  bool devices_shared = false;  // more ranks than devices
  experiments::Circumstances circumstances;
  std::optional<double> expected_seconds;  // from finished runs of the same kind
};

struct Plan {
  std::vector<PlannedRun> runs;                    // in the file's order
  std::vector<Device> devices;                     // all there are to lease
  std::size_t to_run() const;                      // number that is not finished here
  std::optional<double> expected_seconds() const;  // of all to run; empty where one kind is unknown
};

// `database` may be null: nothing has run yet. done_elsewhere runs are run again.
Plan make_plan(const experiments::Experiment& experiment, const std::vector<Device>& devices,
               const experiments::Circumstances& machine, const db::Database* database);

// Indices of the runs that are not finished here, in the order in which they are run: the arms of a
// comparison (runs that differ in their strategy only) stand next to each other, so that slow changes of the
// machine meet all of them alike; otherwise the file's order.
std::vector<std::size_t> execution_order(const Plan& plan);

// "mlp ddp 10": model, strategy and epochs; runs of a kind take about the same time.
std::string kind_of(const experiments::Run& run);

// How many different devices these are.
std::size_t distinct_devices(const std::vector<Device>& devices);

}  // namespace trainyard::orchestrator
