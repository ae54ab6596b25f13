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

#include "reports/results/measured_run.h"

namespace trainyard::reports {

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
