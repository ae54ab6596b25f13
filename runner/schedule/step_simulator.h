// Event simulation of the steps of a mesh. No LibTorch.
// - Each rank does the actions of its schedule in order.
// - A message has arrived when its sender has copied it.
// - The replicas of a stage wait for each other before they reduce gradients.
// - Ranks that compute on the same core share it evenly. A rank that waits does not use its core.
#pragma once

#include <vector>

#include "runner/schedule/schedule.h"

namespace trainyard::runner {

// Time of one rank in one step.
struct StepSeconds {
  double input = 0;          // gathering batches
  double compute = 0;        // forward and backward of all micro-batches
  double bubble = 0;         // waiting for the neighbour stage
  double transfer = 0;       // messages to and from neighbours
  double communication = 0;  // reduction of gradients, and waiting for the other replicas
  double optimizer = 0;
  double other = 0;
  double core_wait = 0;  // waiting for the core, which another rank uses
  double sum() const {
    return input + compute + bubble + transfer + communication + optimizer + other + core_wait;
  }
};

// Work of a rank in a step. The times are those on a core that no other rank uses.
struct RankWork {
  double input = 0;
  double forward = 0;   // of all micro-batches
  double backward = 0;  // of all micro-batches
  double transfer = 0;  // of all messages that it sends and receives
  double reduction = 0;
  double optimizer = 0;
  double other = 0;
};

struct StepPlan {
  Schedule schedule;         // of each replica
  bool stages_meet = false;  // the stages wait for each other before the optimizer, to clip gradients
  // A message has arrived when its sender begins to copy it. The receiver's transfer time includes the rest.
  bool messages_stream = false;
  std::vector<RankWork> ranks;  // index: replica · stages + stage
  std::vector<int> cores;       // core of each rank; empty: one core per rank
};

struct SimulatedSteps {
  double seconds = 0;              // total time divided by the number of steps
  std::vector<StepSeconds> ranks;  // mean per step; the sum of each is about `seconds`
};

// Simulates `steps` steps from a common start. Each rank begins its next step at once. InternalError if the
// schedule does not end.
SimulatedSteps simulate_steps(const StepPlan& plan, int steps);

}  // namespace trainyard::runner
