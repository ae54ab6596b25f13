// Plays a schedule through without computing anything: whether it ends, how many micro-batches each stage
// must keep activations of, and how long the stages wait for one another. Sends do not block, messages
// between two stages arrive in the order they were sent, and transfers take no time. No LibTorch.
#pragma once

#include <string>
#include <vector>

#include "runner/schedule/schedule.h"

namespace trainyard::runner {

struct StageSeconds {  // what one micro-batch costs in every stage
  double forward = 1;
  double backward = 2;
};

struct Simulation {
  std::string
      problem;  // empty where every stage takes all its actions; else the first stage that cannot, and why
  std::vector<int>
      live_activations;        // by stage: the most micro-batches between their forward and their backward
  double seconds = 0;          // until the last stage has done
  double bubble_fraction = 0;  // of stages · seconds, the part in which a stage does not compute
};

Simulation simulate(const Schedule& schedule, const StageSeconds& costs = {});

}  // namespace trainyard::runner
