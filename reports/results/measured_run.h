// A finished run with what its ranks recorded of the steps of its middle epoch: what a prediction is made of,
// and what it is held against.
#pragma once

#include <string>
#include <vector>

#include "db/queries/step_times.h"
#include "experiments/protocol/launch.h"
#include "runner/schedule/step_simulator.h"

namespace trainyard::db {
class Database;
}

namespace trainyard::reports {

struct MeasuredRun {
  experiments::Run run;
  experiments::Launch launch;  // of its last finished attempt
  db::MiddleEpoch epoch;
};

// Of those of `runs` that the yard has finished in this experiment.
std::vector<MeasuredRun> measured_runs(const db::Database& database, const std::string& experiment,
                                       const std::vector<experiments::Run>& runs);

struct StepCost {
  double seconds = 0;         // of a step: as long as its slowest rank takes
  runner::StepSeconds parts;  // mean over ranks
};

inline constexpr double runner::StepSeconds::*const all_parts[] = {
    &runner::StepSeconds::input,    &runner::StepSeconds::compute,       &runner::StepSeconds::bubble,
    &runner::StepSeconds::transfer, &runner::StepSeconds::communication, &runner::StepSeconds::optimizer,
    &runner::StepSeconds::other,    &runner::StepSeconds::core_wait};

// What keeps a run from being taken apart; empty: nothing.
std::string lack_of(const MeasuredRun& run);

// What a rank did in a step by itself, without waiting for others; of ranks that share a core, on that core.
runner::RankWork work_of(const MeasuredRun& run, const db::RankTimes& rank);
runner::RankWork mean_work(const std::vector<const MeasuredRun*>& runs);  // over runs and ranks

StepCost measured_cost(const MeasuredRun& run);

}  // namespace trainyard::reports
