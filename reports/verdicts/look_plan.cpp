#include "reports/verdicts/look_plan.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/joined.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

using Pairs = std::set<std::string>;

std::map<std::string, std::string> pairs_by_key(const Arm& arm) {
  std::map<std::string, std::string> pairs;
  for (const Observation& observation : arm.runs) pairs[observation.run->run_key] = observation.pair;
  return pairs;
}

void add_planned(const std::vector<std::string>& keys, const std::map<std::string, std::string>& pairs,
                 Pairs& planned) {
  for (const std::string& key : keys)
    if (const auto found = pairs.find(key); found != pairs.end()) planned.insert(found->second);
}

// What two arms can be compared by: pairs that both have; unpaired: all runs, where both have enough.
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

bool same_comparison(const experiments::Compare& a, const experiments::Compare& b) {
  return a.axis == b.axis && a.baseline == b.baseline;
}

std::string list_of(const std::vector<std::string>& names) {
  return names.empty() ? "nothing" : models::joined(names);
}

void add_change(std::vector<std::string>& changes, const std::string& what, const std::string& before,
                const std::string& now) {
  if (before != now) changes.push_back(what + " was " + before + " when first planned, now " + now);
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
  number("alpha", first.alpha, now.alpha);
  add_change(changes, "final", first.final_look ? "true" : "false", now.final_look ? "true" : "false");
  add_change(changes, "pair", list_of(first.pair), list_of(now.pair));
  return changes;
}

class Planner {
 public:
  Planner(const experiments::Compare& compare, const Cell& cell, const Arm& arm)
      : compare_(compare),
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
    if (!first_) {
      const auto found = std::ranges::find_if(
          entry.compare, [&](const experiments::Compare& one) { return same_comparison(one, compare_); });
      if (found != entry.compare.end()) first_ = *found;
    }
    planned_last_ = baseline;
    planned_last_.insert(arm.begin(), arm.end());
    baseline_.insert(baseline.begin(), baseline.end());
    arm_pairs_.insert(arm.begin(), arm.end());
    add_look(compared_pairs(baseline_, arm_pairs_, !compare_.pair.empty()));
  }

  LookPlan result() {
    LookPlan plan;
    plan.rules = first_.value_or(compare_);
    plan.changes = changes_since(plan.rules, compare_);
    plan.rules.pair = compare_.pair;  // it made the cells: a change of it is only told
    add_without_abandoned();
    if (looks_.empty()) looks_.push_back(everything());
    if (plan.rules.final_look) looks_.resize(1);
    plan.looks = std::move(looks_);
    return plan;
  }

 private:
  void add_look(const Pairs& pairs) {
    if (!pairs.empty() && (looks_.empty() || pairs != looks_.back())) looks_.push_back(pairs);
  }

  Pairs everything() const {
    Pairs pairs = baseline_;
    pairs.insert(arm_pairs_.begin(), arm_pairs_.end());
    return pairs;
  }

  // Runs that were planned, never finished and are planned no longer: their looks can never be made. What is
  // left is another set of seeds, and so a look after them.
  void add_without_abandoned() {
    Pairs left = looks_.empty() ? Pairs{} : looks_.back();
    for (const Arm* arm : {&cell_.baseline, &arm_})
      for (const Observation& observation : arm->runs)
        if (is_open(observation) && !planned_last_.contains(observation.pair)) left.erase(observation.pair);
    if (left.size() >= static_cast<std::size_t>(fewest_pairs)) add_look(left);
  }

  const experiments::Compare& compare_;
  const Cell& cell_;
  const Arm& arm_;
  std::map<std::string, std::string> baseline_keys_;
  std::map<std::string, std::string> arm_keys_;
  std::optional<experiments::Compare> first_;
  Pairs baseline_;
  Pairs arm_pairs_;
  Pairs planned_last_;
  std::vector<Pairs> looks_;
};

}  // namespace

LookPlan plan_looks(const ReportData& data, const experiments::Compare& compare, const Cell& cell,
                    const Arm& arm) {
  Planner planner(compare, cell, arm);
  for (const db::PlanEntry& entry : data.history) planner.take(entry);
  return planner.result();
}

Arm runs_in(const Arm& arm, const std::set<std::string>& look) {
  Arm result{arm.value, {}};
  std::ranges::copy_if(arm.runs, std::back_inserter(result.runs),
                       [&](const Observation& observation) { return look.contains(observation.pair); });
  return result;
}

}  // namespace trainyard::reports
