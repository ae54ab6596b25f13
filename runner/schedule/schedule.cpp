#include "runner/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/named_row.h"

namespace trainyard::runner {

namespace {

using Kind = Action::Kind;

// The actions of one stage, with the messages to and from its neighbours.
class StageActions {
 public:
  StageActions(int stage, int stages) : first_(stage == 0), last_(stage == stages - 1) {}

  void forward(int micro_batch) {
    if (!first_) actions_.push_back({Kind::receive_activations, micro_batch});
    actions_.push_back({Kind::forward, micro_batch});
    if (!last_) actions_.push_back({Kind::send_activations, micro_batch});
  }
  void backward(int micro_batch) {
    if (!last_) actions_.push_back({Kind::receive_gradients, micro_batch});
    actions_.push_back({Kind::backward, micro_batch});
    if (!first_) actions_.push_back({Kind::send_gradients, micro_batch});
  }
  std::vector<Action> take() { return std::move(actions_); }

 private:
  bool first_;
  bool last_;
  std::vector<Action> actions_;
};

std::vector<Action> layer_by_layer(int stage, int stages, int micro_batches) {
  StageActions actions(stage, stages);
  for (int m = 0; m < micro_batches; ++m) {
    actions.forward(m);
    actions.backward(m);
  }
  return actions.take();
}

std::vector<Action> gpipe(int stage, int stages, int micro_batches) {
  StageActions actions(stage, stages);
  for (int m = 0; m < micro_batches; ++m) actions.forward(m);
  for (int m = 0; m < micro_batches; ++m) actions.backward(m);
  return actions.take();
}

std::vector<Action> one_forward_one_backward(int stage, int stages, int micro_batches) {
  StageActions actions(stage, stages);
  const int ahead = std::min(micro_batches, stages - 1 - stage);
  for (int m = 0; m < ahead; ++m) actions.forward(m);
  for (int m = ahead; m < micro_batches; ++m) {
    actions.forward(m);
    actions.backward(m - ahead);
  }
  for (int m = micro_batches - ahead; m < micro_batches; ++m) actions.backward(m);
  return actions.take();
}

struct Row {
  const char* kind;
  std::vector<Action> (*actions)(int stage, int stages, int micro_batches);
};

constexpr std::array rows{Row{"", layer_by_layer}, Row{"gpipe", gpipe},
                          Row{"1f1b", one_forward_one_backward}};

}  // namespace

Schedule training_schedule(const std::string& kind, int stages, int micro_batches) {
  const Row& row = named_row(rows, &Row::kind, "schedule", kind);
  Schedule schedule;
  for (int stage = 0; stage < stages; ++stage) {
    schedule.push_back(row.actions(stage, stages, micro_batches));
  }
  return schedule;
}

Schedule evaluation_schedule(int stages, int micro_batches) {
  Schedule schedule;
  for (int stage = 0; stage < stages; ++stage) {
    StageActions actions(stage, stages);
    for (int m = 0; m < micro_batches; ++m) actions.forward(m);
    schedule.push_back(actions.take());
  }
  return schedule;
}

Schedule in_turns(const Schedule& schedule, int micro_batches, int turns) {
  Schedule all(schedule.size());
  for (std::size_t stage = 0; stage < schedule.size(); ++stage) {
    for (int turn = 0; turn < turns; ++turn) {
      for (Action action : schedule[stage]) {
        action.micro_batch += turn * micro_batches;
        all[stage].push_back(action);
      }
    }
  }
  return all;
}

std::string describe(const Action& action) {
  constexpr std::array names{"receiving activations", "forward",  "sending activations",
                             "receiving gradients",   "backward", "sending gradients"};
  return std::string(names.at(static_cast<std::size_t>(action.kind))) + " of micro-batch " +
         std::to_string(action.micro_batch);
}

}  // namespace trainyard::runner
