// Pipeline schedules as data: a list of actions per stage. One executor (runner/trainer/executor.h) runs any
// such list. A step's samples are divided into micro-batches, numbered from 0. No LibTorch.
//
// - "": a micro-batch passes forward and backward through all stages before the next one begins.
// - "gpipe": all micro-batches forward, then all backward (Huang et al. 2019, section 2.2).
// - "1f1b": only as many forward as keep the stages busy, then one forward and one backward in turn
//   (PipeDream-flush, Narayanan et al. 2021, section 2.2).
#pragma once

#include <string>
#include <vector>

namespace trainyard::runner {

struct Action {
  enum class Kind {
    receive_activations,  // from the previous stage
    forward,
    send_activations,   // to the next stage
    receive_gradients,  // from the next stage
    backward,
    send_gradients,  // to the previous stage
  };
  Kind kind = Kind::forward;
  int micro_batch = 0;
  bool operator==(const Action&) const = default;
};

using Schedule = std::vector<std::vector<Action>>;  // per stage

// UserError for an unknown kind.
Schedule training_schedule(const std::string& kind, int stages, int micro_batches);

// Forward passes only.
Schedule evaluation_schedule(int stages, int micro_batches);

// `schedule` repeated `turns` times, for gradient accumulation. Turn n (from 0) has the micro-batches from
// n · micro_batches.
Schedule in_turns(const Schedule& schedule, int micro_batches, int turns);

// "forward of micro-batch 3"
std::string describe(const Action& action);

}  // namespace trainyard::runner
