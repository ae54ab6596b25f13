// Requirements of NCCL on a schedule. NCCL matches the messages between two stages in the order in which both
// post them, and it runs the operations of a group one after another. So both ends of a direction need the
// same order, and a receive that is posted ahead must not block a send.
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "runner/schedule/schedule.h"

namespace {

using namespace trainyard::runner;
using Kind = Action::Kind;

std::vector<int> micro_batches_of(const std::vector<Action>& actions, Kind kind) {
  std::vector<int> order;
  for (const Action& action : actions)
    if (action.kind == kind) order.push_back(action.micro_batch);
  return order;
}

// All schedules for a grid of sizes: training, with and without gradient accumulation, and evaluation.
template <class Check>
void for_each_schedule(const Check& check) {
  for (int stages = 2; stages <= 5; ++stages)
    for (const int micro_batches : {1, 2, 3, 4, 8}) {
      CAPTURE(stages);
      CAPTURE(micro_batches);
      for (const std::string kind : {"", "gpipe", "1f1b"}) {
        CAPTURE(kind);
        const Schedule schedule = training_schedule(kind, stages, micro_batches);
        check(schedule);
        check(in_turns(schedule, micro_batches, 3));
      }
      check(evaluation_schedule(stages, micro_batches));
    }
}

// An operation on the stream of a group. It runs when it is first in its stream, the earlier computations of
// its stage are done, and the same holds for its partner.
struct Operation {
  bool sends;
  int micro_batch;
  std::size_t after;  // number of computations of the stage before it
};

struct Group {
  int from, to;
  bool operator<(const Group& other) const { return std::pair(from, to) < std::pair(other.from, other.to); }
};

// Simulates what the executor posts without waiting on the host: up to two receives ahead.
// A receive of gradients follows the launch of its forward pass.
class Play {
 public:
  // `group_of`: the group in which one stage sends to another.
  Play(const Schedule& schedule, Group (*group_of)(int from, int to))
      : group_of_(group_of), computing_(schedule.size()), done_(schedule.size()) {
    for (int stage = 0; stage < static_cast<int>(schedule.size()); ++stage)
      post(stage, schedule[static_cast<std::size_t>(stage)]);
  }

  bool ends() {
    while (compute() || communicate()) {
    }
    for (const auto& [stream, operations] : streams_)
      if (!operations.empty()) return false;
    for (std::size_t stage = 0; stage < computing_.size(); ++stage)
      if (done_[stage] < computing_[stage].size()) return false;
    return true;
  }

 private:
  using Wait = std::pair<Kind, int>;  // for the message of a micro-batch
  using Stream = std::pair<int, Group>;

  void post(int stage, const std::vector<Action>& actions) {
    std::deque<Action> ahead;
    std::size_t next = 0;
    std::vector<bool> forwarded(actions.size());
    for (const Action& action : actions) {
      for (; next < actions.size() && ahead.size() < 2; ++next)
        if (is_receive(actions[next])) ahead.push_back(actions[next]);
      bool gradients_blocked = false;
      for (Action& message : ahead) {
        if (message.micro_batch < 0) continue;  // already posted
        const bool gradients = message.kind == Kind::receive_gradients;
        gradients_blocked |= gradients && !forwarded[static_cast<std::size_t>(message.micro_batch)];
        if (gradients && gradients_blocked) continue;
        const int from = gradients ? stage + 1 : stage - 1;
        streams_[{stage, group_of_(from, stage)}].push_back(
            {false, message.micro_batch, computing_[static_cast<std::size_t>(stage)].size()});
        message.micro_batch = -1;
      }
      take(stage, action);
      if (is_receive(action)) ahead.pop_front();
      if (action.kind == Kind::forward) forwarded[static_cast<std::size_t>(action.micro_batch)] = true;
    }
  }

  static bool is_receive(const Action& action) {
    return action.kind == Kind::receive_activations || action.kind == Kind::receive_gradients;
  }

  void take(int stage, const Action& action) {
    auto& computing = computing_[static_cast<std::size_t>(stage)];
    if (is_receive(action)) computing.emplace_back(Wait{action.kind, action.micro_batch});
    if (action.kind == Kind::forward || action.kind == Kind::backward) computing.emplace_back(std::nullopt);
    if (action.kind != Kind::send_activations && action.kind != Kind::send_gradients) return;
    const int to = action.kind == Kind::send_activations ? stage + 1 : stage - 1;
    streams_[{stage, group_of_(stage, to)}].push_back({true, action.micro_batch, computing.size()});
  }

  // Runs all computations that do not have to wait.
  bool compute() {
    bool moved = false;
    for (std::size_t stage = 0; stage < computing_.size(); ++stage)
      for (auto& done = done_[stage]; done < computing_[stage].size(); ++done, moved = true) {
        const auto& wait = computing_[stage][done];
        if (wait && !arrived_.contains({static_cast<int>(stage), *wait})) break;
      }
    return moved;
  }

  // Runs one message if both ends are first in their streams.
  bool communicate() {
    for (auto& [stream, operations] : streams_) {
      const auto& [stage, group] = stream;
      if (operations.empty() || !operations.front().sends) continue;
      const Operation send = operations.front();
      if (done_[static_cast<std::size_t>(stage)] < send.after) continue;
      const int to = group.from == stage ? group.to : group.from;
      auto& receives = streams_[{to, group}];
      if (receives.empty() || receives.front().sends) continue;
      if (done_[static_cast<std::size_t>(to)] < receives.front().after) continue;
      CHECK(receives.front().micro_batch == send.micro_batch);
      receives.pop_front();
      operations.pop_front();
      const Kind kind = to > stage ? Kind::receive_activations : Kind::receive_gradients;
      arrived_[{to, {kind, send.micro_batch}}] = true;
      return true;
    }
    return false;
  }

  Group (*group_of_)(int, int);
  std::map<Stream, std::deque<Operation>> streams_;
  std::vector<std::vector<std::optional<Wait>>> computing_;  // by stage (no value: a computation)
  std::vector<std::size_t> done_;
  std::map<std::pair<int, Wait>, bool> arrived_;
};

Group one_a_direction(int from, int to) {
  return {from, to};
}

Group one_a_pair(int from, int to) {
  return {std::min(from, to), std::max(from, to)};
}

}  // namespace

TEST_CASE("in every schedule both ends of a direction post its messages in the same order") {
  for_each_schedule([](const Schedule& schedule) {
    for (std::size_t stage = 0; stage + 1 < schedule.size(); ++stage) {
      const auto &before = schedule[stage], &after = schedule[stage + 1];
      CHECK(micro_batches_of(before, Kind::send_activations) ==
            micro_batches_of(after, Kind::receive_activations));
      CHECK(micro_batches_of(after, Kind::send_gradients) ==
            micro_batches_of(before, Kind::receive_gradients));
    }
  });
}

TEST_CASE("with one NCCL group per direction no schedule deadlocks") {
  for_each_schedule([](const Schedule& schedule) { CHECK(Play(schedule, one_a_direction).ends()); });
}

TEST_CASE("with one group for both directions a receive that is posted ahead blocks a send for ever") {
  for (const std::string kind : {"", "gpipe", "1f1b"}) {
    CAPTURE(kind);
    CHECK_FALSE(Play(training_schedule(kind, 2, 4), one_a_pair).ends());
  }
  CHECK(Play(evaluation_schedule(2, 4), one_a_pair).ends());  // has only one direction
}
