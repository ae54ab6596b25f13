#include "runner/schedule/step_simulator.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

namespace trainyard::runner {

namespace {

using Kind = Action::Kind;
using Part = double StepSeconds::*;

// One item of a rank's step: work, a message or a barrier.
struct Item {
  enum class Does { work, send, receive, barrier };
  Does does = Does::work;
  Part part = &StepSeconds::other;  // its time is counted here
  double seconds = 0;               // for work
  int channel = 0;                  // for send and receive; for barrier the group
};

struct Rank {
  std::vector<Item> step;  // one step
  std::size_t next = 0;
  int step_number = 0;
  double left = 0;  // remaining seconds of the current work, on a core that no other rank uses
  bool works = false;
  bool has_come = false;  // waits in the next barrier
  int core = 0;
  StepSeconds spent;
};

// A channel for messages in one direction, or the group of a barrier.
struct Signals {
  int given = 0;
  int taken = 0;
  int members = 0;
};

bool is_message(const Action& action) {
  return action.kind != Kind::forward && action.kind != Kind::backward;
}

class World {
 public:
  World(const StepPlan& plan, int steps)
      : stages_(static_cast<int>(plan.schedule.size())),
        replicas_(static_cast<int>(plan.ranks.size()) / stages_),
        steps_(steps) {
    ranks_.resize(plan.ranks.size());
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const auto index = static_cast<std::size_t>(r);
      ranks_[index].core = plan.cores.empty() ? r : plan.cores.at(index);
      ranks_[index].step = items_of(plan, r);
    }
  }

  SimulatedSteps run() {
    while (true) {
      for (bool moved = true; moved;) {
        moved = false;
        for (Rank& rank : ranks_) moved = advance(rank) || moved;
      }
      if (std::ranges::all_of(ranks_, [&](const Rank& rank) { return is_done(rank); })) break;
      let_time_pass();
    }
    SimulatedSteps result{now_ / steps_, {}};
    for (const Rank& rank : ranks_) result.ranks.push_back(per_step(rank.spent));
    return result;
  }

 private:
  std::vector<Item> items_of(const StepPlan& plan, int r) {
    const int stage = r % stages_;
    const auto& actions = plan.schedule[static_cast<std::size_t>(stage)];
    const RankWork& work = plan.ranks[static_cast<std::size_t>(r)];
    const auto count = [&](auto&& is) { return static_cast<double>(std::ranges::count_if(actions, is)); };
    const double forwards = count([](const Action& a) { return a.kind == Kind::forward; });
    const double backwards = count([](const Action& a) { return a.kind == Kind::backward; });
    const double messages = count(is_message);
    std::vector<Item> items;
    const auto add_work = [&](Part part, double seconds) {
      items.push_back({Item::Does::work, part, seconds, 0});
    };
    add_work(&StepSeconds::other, work.other);
    for (const Action& action : actions) {
      if (action.kind == Kind::forward) {
        add_work(&StepSeconds::input, work.input / forwards);
        add_work(&StepSeconds::compute, work.forward / forwards);
      } else if (action.kind == Kind::backward) {
        add_work(&StepSeconds::compute, work.backward / backwards);
      } else {
        add_message(items, action, r, work.transfer / messages, plan.messages_stream);
      }
    }
    if (replicas_ > 1)
      items.push_back(barrier(group("replicas", stage, replicas_), &StepSeconds::communication));
    add_work(&StepSeconds::communication, work.reduction);
    if (plan.stages_meet && stages_ > 1)
      items.push_back(barrier(group("stages", r / stages_, stages_), &StepSeconds::optimizer));
    add_work(&StepSeconds::optimizer, work.optimizer);
    return items;
  }

  // A receiver waits for a message, then copies it.
  void add_message(std::vector<Item>& items, const Action& action, int r, double seconds, bool streams) {
    const bool forward = action.kind == Kind::send_activations || action.kind == Kind::receive_activations;
    const bool sends = action.kind == Kind::send_activations || action.kind == Kind::send_gradients;
    const int other = forward == sends ? r + 1 : r - 1;
    const int channel = sends ? group("message", r, other) : group("message", other, r);
    const Item copy{Item::Does::work, &StepSeconds::transfer, seconds, 0};
    const Item sign{sends ? Item::Does::send : Item::Does::receive, &StepSeconds::bubble, 0, channel};
    const bool sign_first = !sends || streams;
    items.push_back(sign_first ? sign : copy);
    items.push_back(sign_first ? copy : sign);
  }

  static Item barrier(int group, Part part) { return {Item::Does::barrier, part, 0, group}; }

  // The number of a channel or group.
  int group(const char* what, int a, int b) {
    const auto [place, is_new] = numbers_.try_emplace({what, a, b}, static_cast<int>(signals_.size()));
    if (is_new) signals_.push_back({0, 0, b});
    return place->second;
  }

  bool is_done(const Rank& rank) const { return rank.step_number == steps_; }

  // Does all items that take no time. True if there was one.
  bool advance(Rank& rank) {
    bool moved = false;
    while (!is_done(rank) && !rank.works && take(rank)) {
      moved = true;
      if (!rank.works) go_on(rank);
    }
    return moved;
  }

  static void go_on(Rank& rank) {
    if (++rank.next < rank.step.size()) return;
    rank.next = 0;
    ++rank.step_number;
  }

  bool take(Rank& rank) {
    const Item& item = rank.step[rank.next];
    Signals& signals = signals_.empty() ? nothing_ : signals_[static_cast<std::size_t>(item.channel)];
    switch (item.does) {
      case Item::Does::work:
        rank.left = item.seconds;
        rank.works = item.seconds > 0;
        return true;
      case Item::Does::send:
        ++signals.given;
        return true;
      case Item::Does::receive:
        if (signals.taken == signals.given) return false;
        ++signals.taken;
        return true;
      case Item::Does::barrier:
        return pass_barrier(rank, signals);
    }
    return false;
  }

  // A barrier: true once all members have reached it.
  static bool pass_barrier(Rank& rank, Signals& signals) {
    if (!rank.has_come) ++signals.given;
    rank.has_come = signals.given < signals.members * (rank.step_number + 1);
    return !rank.has_come;
  }

  void let_time_pass() {
    std::map<int, int> busy;  // core → number of ranks that compute
    for (const Rank& rank : ranks_)
      if (rank.works) ++busy[rank.core];
    if (busy.empty()) throw InternalError("the schedule does not end");
    double seconds = -1;
    for (const Rank& rank : ranks_) {
      if (!rank.works) continue;
      const double until_done = rank.left * busy[rank.core];
      if (seconds < 0 || until_done < seconds) seconds = until_done;
    }
    now_ += seconds;
    for (Rank& rank : ranks_)
      if (!is_done(rank)) spend(rank, seconds, rank.works ? busy[rank.core] : 1);
  }

  static void spend(Rank& rank, double seconds, int sharing) {
    const Item& item = rank.step[rank.next];
    if (!rank.works) {
      rank.spent.*item.part += seconds;
      return;
    }
    const double worked = seconds / sharing;
    rank.spent.*item.part += worked;
    rank.spent.core_wait += seconds - worked;
    rank.left -= worked;
    if (rank.left > 1e-12 * item.seconds) return;
    rank.works = false;
    go_on(rank);
  }

  StepSeconds per_step(StepSeconds spent) const {
    for (const Part part :
         {&StepSeconds::input, &StepSeconds::compute, &StepSeconds::bubble, &StepSeconds::transfer,
          &StepSeconds::communication, &StepSeconds::optimizer, &StepSeconds::other, &StepSeconds::core_wait})
      spent.*part /= steps_;
    return spent;
  }

  int stages_;
  int replicas_;
  int steps_;
  double now_ = 0;
  std::vector<Rank> ranks_;
  std::map<std::tuple<std::string, int, int>, int> numbers_;
  std::vector<Signals> signals_;
  Signals nothing_;
};

}  // namespace

SimulatedSteps simulate_steps(const StepPlan& plan, int steps) {
  if (plan.schedule.empty() || plan.ranks.empty() || plan.ranks.size() % plan.schedule.size() != 0 ||
      steps < 1)
    throw InternalError("cannot simulate a mesh of " + std::to_string(plan.ranks.size()) + " ranks and " +
                        std::to_string(plan.schedule.size()) + " stages");
  return World(plan, steps).run();
}

}  // namespace trainyard::runner
