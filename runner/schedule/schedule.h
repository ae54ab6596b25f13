// What the stages of a pipeline do in a step, as data: each stage has a list of actions that it takes one
// after the other, and one executor (runner/trainer/executor.h) runs any such list. A step's samples are
// divided into micro-batches, numbered from 0. No LibTorch; `schedule_simulator` says what a schedule costs
// without running it.
//
//   ""       layer by layer: a micro-batch goes forward and backward through all stages before the next
//   begins "gpipe"  all micro-batches forward, then all backward (Huang et al. 2019, section 2.2) "1f1b"   as
//   few forward as keep the stages busy, then one forward, one backward in turn (PipeDream-flush,
//            Narayanan et al. 2021, section 2.2)
#pragma once

#include <string>
#include <vector>

namespace trainyard::runner {

struct Action {
  enum class Kind {
    receive_activations,  // from the stage before
    forward,
    send_activations,   // to the stage after
    receive_gradients,  // of what was sent to the stage after
    backward,
    send_gradients,  // of what was received from the stage before
  };
  Kind kind = Kind::forward;
  int micro_batch = 0;
  bool operator==(const Action&) const = default;
};

using Schedule = std::vector<std::vector<Action>>;  // by stage

// UserError for an unknown kind, with those that exist.
Schedule training_schedule(const std::string& kind, int stages, int micro_batches);

// Forward only: micro-batches stream through the stages.
Schedule evaluation_schedule(int stages, int micro_batches);

// `schedule` of `micro_batches` so many times over, the n-th time (from 0) with micro-batches n ·
// micro_batches and on: gradients accumulate over all of them.
Schedule in_turns(const Schedule& schedule, int micro_batches, int turns);

// "forward of micro-batch 3"
std::string describe(const Action& action);

// Plays a schedule through without computing anything: whether it ends, how many micro-batches each stage
// must keep activations of, and how long the stages wait for one another. Sends do not block, messages
// between two stages arrive in the order they were sent, and transfers take no time. No LibTorch.

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
