// What a step of an arm would cost by a model of it, beside what it was measured to cost: says why an arm
// costs what it costs, and how well that is understood. For `trainyard predict`.
//
//   stages       each rank's own work in each part, put together by the simulator
//   (runner/schedule/step_simulator.h):
//                what it finds is who waits for whom, and for a core where ranks share one
//   replicas     the step of the same model on one device, for the replica's part of the batch: that of
//                independent ranks at once where they were trained (they share memory and power as the
//                replicas do), else of `single`; the optimizer as there, or where replicas share memory
//                their part of it; gradients as the replicas waited
//   independent  the step of `single`, as if nothing were shared
//
// `single` is predicted from nothing: the others are predicted from it, and only from runs of the same
// machine, release, threads and precision. There are no fitted constants.
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

// A finished run with what its ranks recorded of the steps of its middle epoch: what a prediction is made of,
// and what it is held against.

struct MeasuredRun {
  experiments::Run run;
  experiments::Launch launch;  // of its last finished attempt
  db::MedianEpoch epoch;
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

// Of an arm, mean over its runs.
struct Prediction {
  std::string model;
  std::string cell;  // further values that the matrix varies: "batch 64"
  std::string arm;
  int runs = 0;
  std::string basis;    // what the prediction is made of
  std::string missing;  // why there is none; else empty
  StepCost predicted;   // zero where it is missing
  StepCost measured;    // zero where the runs have not recorded their steps
  double error_percent() const { return 100 * (predicted.seconds / measured.seconds - 1); }
};

// By model, cell and arm. Of `single` none.
std::vector<Prediction> predictions(const std::vector<MeasuredRun>& runs);

}  // namespace trainyard::reports
