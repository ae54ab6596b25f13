// Simulation of a schedule: does it end, how many activations must each stage keep, and how long do the
// stages wait? Sends do not block, messages between two stages arrive in order, and transfers take no time.
#pragma once

#include <string>
#include <vector>

#include "runner/schedule/schedule.h"

namespace trainyard::runner {

struct StageSeconds {  // time of one micro-batch in every stage
  double forward = 1;
  double backward = 2;
};

struct Simulation {
  std::string problem;  // the first stage that cannot do all its actions, and why; empty if there is none
  std::vector<int> live_activations;  // per stage: maximum of micro-batches between forward and backward
  double seconds = 0;                 // until the last stage has finished
  double bubble_fraction = 0;         // fraction of stages · seconds in which a stage does not compute
};

Simulation simulate(const Schedule& schedule, const StageSeconds& costs = {});

}  // namespace trainyard::runner
