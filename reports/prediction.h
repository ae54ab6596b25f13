// What a step of an arm would cost by a model of it, beside what it was measured to cost: says why an arm
// costs what it costs, and how well that is understood. For `trainyard predict`.
//
//   stages       each rank's own work in each part, put together by the simulator (runner/step_simulator.h):
//                what it finds is who waits for whom, and for a core where ranks share one
//   replicas     the step of the same model on one device, for the replica's part of the batch: that of
//                independent ranks at once where they were trained (they share memory and power as the
//                replicas do), else of `single`; the optimizer as there, or where replicas share memory
//                their part of it; gradients as the replicas waited
//   independent  the step of `single`, as if nothing were shared
//
// `single` is predicted from nothing: the others are predicted from it. There are no fitted constants.
#pragma once

#include <string>
#include <vector>

#include "db/step_times.h"
#include "experiments/launch.h"
#include "runner/step_simulator.h"

namespace trainyard::db {
class Database;
}

namespace trainyard::reports {

// A finished run with what the model needs of it.
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
