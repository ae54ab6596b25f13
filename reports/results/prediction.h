// Predicted and measured step time of an arm, split by phase. For `trainyard predict`.
//
// - Stages: the simulator (runner/schedule/step_simulator.h) combines the measured work of each rank. It adds
//   waits for other ranks and for shared cores.
// - Replicas: the step on one device, scaled to the replica's part of the batch, plus the measured waits for
//   gradients. The step is that of independent ranks at once if they were trained, as they share memory and
//   power like replicas, else that of `single`. With shared memory, each replica updates only its part of the
//   weights.
// - Independent: the step of `single`, as if nothing were shared.
//
// `single` is not predicted. Only runs with the same machine, release, threads and precision are used. No
// constants are fitted.
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

// A finished run with the recorded step times of its median epoch.
struct MeasuredRun {
  experiments::Run run;
  experiments::Launch launch;  // of its last finished attempt
  db::MedianEpoch epoch;
};

// The finished ones of `runs` in this experiment.
std::vector<MeasuredRun> measured_runs(const db::Database& database, const std::string& experiment,
                                       const std::vector<experiments::Run>& runs);

struct StepCost {
  double seconds = 0;         // per step, of the slowest rank
  runner::StepSeconds parts;  // mean over ranks
};

inline constexpr double runner::StepSeconds::*const all_parts[] = {
    &runner::StepSeconds::input,    &runner::StepSeconds::compute,       &runner::StepSeconds::bubble,
    &runner::StepSeconds::transfer, &runner::StepSeconds::communication, &runner::StepSeconds::optimizer,
    &runner::StepSeconds::other,    &runner::StepSeconds::core_wait};

// Why the step time of a run cannot be split by phase; empty if it can.
std::string lack_of(const MeasuredRun& run);

// Work of a rank per step without waits for other ranks. If ranks share a core: processor time on that core.
runner::RankWork work_of(const MeasuredRun& run, const db::RankTimes& rank);
runner::RankWork mean_work(const std::vector<const MeasuredRun*>& runs);  // over runs and ranks

StepCost measured_cost(const MeasuredRun& run);

// Prediction for an arm, mean over its runs.
struct Prediction {
  std::string model;
  std::string cell;  // further values that the matrix varies: "batch 64"
  std::string arm;
  int runs = 0;
  std::string basis;    // source of the prediction
  std::string missing;  // why there is no prediction; else empty
  StepCost predicted;   // zero if `missing`
  StepCost measured;    // zero if the runs have not recorded their steps
  double error_percent() const { return 100 * (predicted.seconds / measured.seconds - 1); }
};

// Predictions by model, cell and arm, without `single`.
std::vector<Prediction> predictions(const std::vector<MeasuredRun>& runs);

}  // namespace trainyard::reports
