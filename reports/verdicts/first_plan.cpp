#include "reports/verdicts/first_plan.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/statistics/sequential.h"
#include "reports/verdicts/plan_caveats.h"

namespace trainyard::reports {

namespace {

using Pairs = std::set<std::string>;

std::map<std::string, std::string> pairs_by_key(const ArmRuns& arm) {
  std::map<std::string, std::string> pairs;
  for (const Observation& observation : arm.runs) pairs[observation.run->run_key] = observation.pair;
  return pairs;
}

void add_planned(const std::vector<std::string>& keys, const std::map<std::string, std::string>& pairs,
                 Pairs& planned) {
  for (const std::string& key : keys)
    if (const auto found = pairs.find(key); found != pairs.end()) planned.insert(found->second);
}

// Pairs that both arms have; unpaired: all runs. Empty if there are too few for a test.
Pairs compared_pairs(const Pairs& baseline, const Pairs& arm, bool paired) {
  Pairs both;
  if (paired) {
    std::ranges::set_intersection(baseline, arm, std::inserter(both, both.end()));
    if (both.size() < static_cast<std::size_t>(fewest_pairs)) both.clear();
    return both;
  }
  if (std::min(baseline.size(), arm.size()) < static_cast<std::size_t>(fewest_pairs)) return both;
  std::ranges::set_union(baseline, arm, std::inserter(both, both.end()));
  return both;
}

// "4 to 20", or "fixed".
std::string seeds_text(const experiments::Compare& compare) {
  return compare.seeds ? fmt::format("{} to {}", compare.seeds->min, compare.seeds->max) : "fixed";
}

std::string list_of(const std::vector<std::string>& names) {
  return names.empty() ? "nothing" : joined(names);
}

void add_change(std::vector<std::string>& changes, const std::string& what, const std::string& before,
                const std::string& now) {
  if (before != now) changes.push_back(fmt::format("{} was {} in the first plan, now {}", what, before, now));
}

std::vector<std::string> changes_since(const experiments::Compare& first, const experiments::Compare& now) {
  std::vector<std::string> changes;
  const auto number = [&](const std::string& what, double before, double after) {
    add_change(changes, what, plain_number(before), plain_number(after));
  };
  number("margin of time", first.margins.time, now.margins.time);
  number("margin of loss", first.margins.loss.ratio, now.margins.loss.ratio);
  number("absolute margin of loss", first.margins.loss.absolute, now.margins.loss.absolute);
  number("margin of accuracy", first.margins.accuracy_points, now.margins.accuracy_points);
  const auto own = [](const std::map<std::string, double>& margins, const std::string& name) {
    return margins.contains(name) ? plain_number(margins.at(name)) : "that of the loss";
  };
  std::map<std::string, double> names = first.margins.own;
  names.insert(now.margins.own.begin(), now.margins.own.end());
  for (const auto& [name, margin] : names)
    add_change(changes, "margin of " + name, own(first.margins.own, name), own(now.margins.own, name));
  number("alpha", first.alpha, now.alpha);
  add_change(changes, "families", first.families, now.families);
  add_change(changes, "number of seeds", seeds_text(first), seeds_text(now));
  add_change(changes, "pair", list_of(first.pair), list_of(now.pair));
  return changes;
}

class Planner {
 public:
  Planner(const ReportData& data, const experiments::Compare& compare, const CellRuns& cell,
          const ArmRuns& arm)
      : data_(data),
        compare_(compare),
        cell_(cell),
        arm_(arm),
        baseline_keys_(pairs_by_key(cell.baseline)),
        arm_keys_(pairs_by_key(arm)) {}

  void take(const db::PlanEntry& entry) {
    Pairs baseline;
    Pairs arm;
    add_planned(entry.keys, baseline_keys_, baseline);
    add_planned(entry.keys, arm_keys_, arm);
    if (baseline.empty() && arm.empty()) return;
    if (!rules_) {
      const auto found = std::ranges::find_if(
          entry.compare, [&](const experiments::Compare& one) { return same_comparison(one, compare_); });
      if (found != entry.compare.end()) rules_ = *found;
    }
    planned_last_ = baseline;
    planned_last_.insert(arm.begin(), arm.end());
    baseline_.insert(baseline.begin(), baseline.end());
    arm_pairs_.insert(arm.begin(), arm.end());
    all_ = compared_pairs(baseline_, arm_pairs_, !compare_.pair.empty());
    if (first_.empty()) first_ = all_;
  }

  FirstPlan result() {
    FirstPlan plan;
    plan.rules = rules_.value_or(compare_);
    plan.changes = changes_since(plan.rules, compare_);
    plan.rules.pair = compare_.pair;  // the cells are built with the new pairing: a change is only noted
    plan.pairs = first_.empty() ? everything() : first_;
    std::ranges::set_difference(all_, plan.pairs, std::inserter(plan.later, plan.later.end()));
    const std::size_t planned = plan.pairs.size();
    const bool sequential = plan.rules.seeds && !compare_.pair.empty();
    leave_out_abandoned(plan.pairs);
    // The looks of a range stay, so its errors do too.
    const int last = static_cast<int>(sequential ? planned : plan.pairs.size());
    plan.looks = {.first = sequential ? std::min(plan.rules.seeds->min, last) : last, .last = last};
    if (!sequential) plan.abandoned = planned - plan.pairs.size();
    return plan;
  }

 private:
  Pairs everything() const {
    Pairs pairs = baseline_;
    pairs.insert(arm_pairs_.begin(), arm_pairs_.end());
    return pairs;
  }

  // Abandoned runs were planned, never finished and are not in the latest plan. A plan with them can never be
  // complete. A removed result is not abandoned.
  void leave_out_abandoned(Pairs& pairs) const {
    Pairs left = pairs;
    for (const ArmRuns* arm : {&cell_.baseline, &arm_})
      for (const Observation& observation : arm->runs)
        if (is_open(observation) && !was_removed(data_, observation) &&
            !planned_last_.contains(observation.pair))
          left.erase(observation.pair);
    if (left.size() >= static_cast<std::size_t>(fewest_pairs)) pairs = std::move(left);
  }

  const ReportData& data_;
  const experiments::Compare& compare_;
  const CellRuns& cell_;
  const ArmRuns& arm_;
  std::map<std::string, std::string> baseline_keys_;
  std::map<std::string, std::string> arm_keys_;
  std::optional<experiments::Compare> rules_;
  Pairs baseline_;
  Pairs arm_pairs_;
  Pairs planned_last_;
  Pairs first_;
  Pairs all_;
};

}  // namespace

bool same_comparison(const experiments::Compare& a, const experiments::Compare& b) {
  return a.axis == b.axis && a.baseline == b.baseline;
}

FirstPlan first_plan(const ReportData& data, const experiments::Compare& compare, const CellRuns& cell,
                     const ArmRuns& arm) {
  Planner planner(data, compare, cell, arm);
  for (const db::PlanEntry& entry : data.history) planner.take(entry);
  return planner.result();
}

ArmRuns runs_in(const ArmRuns& arm, const std::set<std::string>& pairs) {
  ArmRuns result{.value = arm.value, .runs = {}};
  std::ranges::copy_if(arm.runs, std::back_inserter(result.runs),
                       [&](const Observation& observation) { return pairs.contains(observation.pair); });
  return result;
}

}  // namespace trainyard::reports
