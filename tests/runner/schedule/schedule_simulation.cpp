#include "tests/runner/schedule/schedule_simulation.h"

#include <algorithm>
#include <deque>
#include <set>

namespace trainyard::runner {

namespace {

using Kind = Action::Kind;

struct Message {
  int micro_batch;
  double time;  // seconds at which it was sent
};

struct Stage {
  const std::vector<Action>* actions = nullptr;
  std::size_t next = 0;
  double time = 0;
  double busy = 0;
  std::size_t most_alive = 0;
  std::set<int> activations, gradients;         // received and not yet used
  std::set<int> forwarded, alive, backwarded;   // forward done; only forward done; backward done
  std::deque<Message> from_before, from_after;  // sent to this stage
  std::set<int> trained;                        // micro-batches with a backward in the schedule
  bool done() const { return next == actions->size(); }
};

enum class Outcome { taken, waits, wrong };

class Player {
 public:
  Player(const Schedule& schedule, const StageSeconds& costs) : costs_(costs), stages_(schedule.size()) {
    for (std::size_t s = 0; s < schedule.size(); ++s) {
      stages_[s].actions = &schedule[s];
      for (const Action& action : schedule[s]) {
        if (action.kind == Kind::backward) stages_[s].trained.insert(action.micro_batch);
      }
    }
  }

  Simulation play() {
    bool moved = true;
    while (moved && problem_.empty()) {
      moved = false;
      for (std::size_t s = 0; s < stages_.size() && problem_.empty(); ++s) {
        while (!stages_[s].done() && take(s) == Outcome::taken) moved = true;
      }
    }
    if (problem_.empty()) problem_ = first_left_over();
    return summary();
  }

 private:
  Outcome take(std::size_t s) {
    Stage& stage = stages_[s];
    const Action action = (*stage.actions)[stage.next];
    const Outcome outcome = act(s, action);
    if (outcome == Outcome::taken) ++stage.next;
    if (outcome == Outcome::wrong)
      problem_ = "stage " + std::to_string(s) + " is not ready for " + describe(action);
    return outcome;
  }

  Outcome act(std::size_t s, const Action& action) {
    Stage& stage = stages_[s];
    const int m = action.micro_batch;
    switch (action.kind) {
      case Kind::receive_activations:
        return receive(stage, stage.from_before, stage.activations, m);
      case Kind::receive_gradients:
        return receive(stage, stage.from_after, stage.gradients, m);
      case Kind::forward:
        return forward(s, m);
      case Kind::backward:
        return backward(s, m);
      case Kind::send_activations:
        if (s + 1 == stages_.size() || !stage.forwarded.contains(m)) return Outcome::wrong;
        stages_[s + 1].from_before.push_back({m, stage.time});
        return Outcome::taken;
      case Kind::send_gradients:
        if (s == 0 || !stage.backwarded.contains(m)) return Outcome::wrong;
        stages_[s - 1].from_after.push_back({m, stage.time});
        return Outcome::taken;
    }
    return Outcome::wrong;
  }

  static Outcome receive(Stage& stage, std::deque<Message>& messages, std::set<int>& received,
                         int micro_batch) {
    if (messages.empty()) return Outcome::waits;
    if (messages.front().micro_batch != micro_batch) return Outcome::wrong;
    stage.time = std::max(stage.time, messages.front().time);
    messages.pop_front();
    received.insert(micro_batch);
    return Outcome::taken;
  }

  Outcome forward(std::size_t s, int micro_batch) {
    Stage& stage = stages_[s];
    if (s > 0 && stage.activations.erase(micro_batch) == 0) return Outcome::wrong;
    if (!stage.forwarded.insert(micro_batch).second) return Outcome::wrong;
    if (stage.trained.contains(micro_batch)) stage.alive.insert(micro_batch);
    stage.most_alive = std::max(stage.most_alive, stage.alive.size());
    compute(stage, costs_.forward);
    return Outcome::taken;
  }

  Outcome backward(std::size_t s, int micro_batch) {
    Stage& stage = stages_[s];
    const bool last = s + 1 == stages_.size();
    if (!last && stage.gradients.erase(micro_batch) == 0) return Outcome::wrong;
    if (stage.alive.erase(micro_batch) == 0) return Outcome::wrong;
    stage.backwarded.insert(micro_batch);
    compute(stage, costs_.backward);
    return Outcome::taken;
  }

  static void compute(Stage& stage, double seconds) {
    stage.time += seconds;
    stage.busy += seconds;
  }

  // The problem that remains if no stage can continue. Empty if there is none.
  std::string first_left_over() const {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const Stage& stage = stages_[s];
      const std::string name = "stage " + std::to_string(s);
      if (!stage.done()) return name + " waits forever in " + describe((*stage.actions)[stage.next]);
      if (!stage.from_before.empty() || !stage.from_after.empty()) return name + " leaves a message unread";
      if (stage.forwarded != stages_.front().forwarded || stage.backwarded != stages_.front().backwarded) {
        return name + " computes other micro-batches than stage 0";
      }
    }
    return "";
  }

  Simulation summary() const {
    Simulation simulation{.problem = problem_, .live_activations = {}};
    double busy = 0;
    for (const Stage& stage : stages_) {
      simulation.live_activations.push_back(static_cast<int>(stage.most_alive));
      simulation.seconds = std::max(simulation.seconds, stage.time);
      busy += stage.busy;
    }
    const double all = simulation.seconds * static_cast<double>(stages_.size());
    if (all > 0) simulation.bubble_fraction = 1 - busy / all;
    return simulation;
  }

  StageSeconds costs_;
  std::vector<Stage> stages_;
  std::string problem_;
};

}  // namespace

Simulation simulate(const Schedule& schedule, const StageSeconds& costs) {
  return Player(schedule, costs).play();
}

}  // namespace trainyard::runner
