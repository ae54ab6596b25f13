// How long the steps of a mesh take, from what each of its ranks does in one: an event simulation, for
// `trainyard predict`. Ranks take the actions of their schedule in turn. A message is there when its sender
// has copied it; replicas of a stage meet for their gradients. Ranks that compute on the same core at the
// same time share it evenly; a rank that waits leaves it to the others. No LibTorch.
#pragma once

#include <string>
#include <vector>

#include "runner/schedule/schedule.h"

namespace trainyard::runner {

// Of one rank in one step.
struct StepSeconds {
  double input = 0;          // gathering batches
  double compute = 0;        // forward and backward of all micro-batches
  double bubble = 0;         // waiting for a stage neighbour
  double transfer = 0;       // what messages to and from neighbours take
  double communication = 0;  // gradients: their reduction, and waiting for the other replicas
  double optimizer = 0;
  double other = 0;
  double core_wait = 0;  // not computing because another rank has the core
  double sum() const {
    return input + compute + bubble + transfer + communication + optimizer + other + core_wait;
  }
};

// What a rank does in a step, each as long as it takes on a core of its own.
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
  bool stages_meet = false;  // before the optimizer, as where gradients are clipped
  // A message is there when its sender begins to copy it: what its receiver spends on it includes waiting for
  // the rest.
  bool messages_stream = false;
  std::vector<RankWork> ranks;  // replica · stages + stage
  std::vector<int> cores;       // of each rank; equal: the same core. Empty: each has its own
};

struct SimulatedSteps {
  double seconds = 0;              // a step, of all of them together
  std::vector<StepSeconds> ranks;  // mean over the steps; each adds up to nearly `seconds`
};

// `steps` steps, one after the other as each rank gets there, from a common start. InternalError where the
// schedule comes to no end.
SimulatedSteps simulate_steps(const StepPlan& plan, int steps);

}  // namespace trainyard::runner
