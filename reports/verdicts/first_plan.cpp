#include "reports/verdicts/first_plan.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/named_row.h"
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

Pairs planned_pairs(const std::vector<std::string>& keys, const std::map<std::string, std::string>& pairs) {
  Pairs planned;
  for (const std::string& key : keys)
    if (const std::string* pair = value_or_null(pairs, key)) planned.insert(*pair);
  return planned;
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

// Abandoned runs were planned, never finished and are not in the latest plan. A plan with them can never be
// complete. A removed result is not abandoned.
void leave_out_abandoned(const ReportData& data, const CellRuns& cell, const ArmRuns& arm,
                         const Pairs& planned_last, Pairs& pairs) {
  Pairs left = pairs;
  for (const ArmRuns* side : {&cell.baseline, &arm})
    for (const Observation& observation : side->runs)
      if (is_open(observation) && !was_removed(data, observation) && !planned_last.contains(observation.pair))
        left.erase(observation.pair);
  if (left.size() >= static_cast<std::size_t>(fewest_pairs)) pairs = std::move(left);
}

}  // namespace

bool same_comparison(const experiments::Compare& a, const experiments::Compare& b) {
  return a.axis == b.axis && a.baseline == b.baseline;
}

FirstPlan first_plan(const ReportData& data, const experiments::Compare& compare, const CellRuns& cell,
                     const ArmRuns& arm) {
  const bool paired = !compare.pair.empty();
  const std::map<std::string, std::string> baseline_keys = pairs_by_key(cell.baseline);
  const std::map<std::string, std::string> arm_keys = pairs_by_key(arm);
  std::optional<experiments::Compare> rules;
  FirstPlan plan;
  Pairs baseline_pairs, arm_pairs, planned_last, all;
  for (const db::PlanEntry& entry : data.history) {
    const Pairs of_baseline = planned_pairs(entry.keys, baseline_keys);
    const Pairs of_arm = planned_pairs(entry.keys, arm_keys);
    if (of_baseline.empty() && of_arm.empty()) continue;
    const auto found = std::ranges::find_if(
        entry.compare, [&](const experiments::Compare& one) { return same_comparison(one, compare); });
    if (!rules && found != entry.compare.end()) rules = *found;
    planned_last = of_baseline;
    planned_last.insert(of_arm.begin(), of_arm.end());
    baseline_pairs.insert(of_baseline.begin(), of_baseline.end());
    arm_pairs.insert(of_arm.begin(), of_arm.end());
    all = compared_pairs(baseline_pairs, arm_pairs, paired);
    if (plan.pairs.empty()) plan.pairs = all;
  }
  if (plan.pairs.empty())
    std::ranges::set_union(baseline_pairs, arm_pairs, std::inserter(plan.pairs, plan.pairs.end()));
  plan.rules = rules.value_or(compare);
  plan.changes = changes_since(plan.rules, compare);
  plan.rules.pair = compare.pair;  // the cells are built with the new pairing: a change is only noted
  std::ranges::set_difference(all, plan.pairs, std::inserter(plan.later, plan.later.end()));
  const std::size_t planned = plan.pairs.size();
  const bool sequential = plan.rules.seeds && paired;
  leave_out_abandoned(data, cell, arm, planned_last, plan.pairs);
  // The looks of a range stay, so its errors do too.
  const int last = static_cast<int>(sequential ? planned : plan.pairs.size());
  plan.looks = {.first = sequential ? std::min(plan.rules.seeds->min, last) : last, .last = last};
  if (!sequential) plan.abandoned = planned - plan.pairs.size();
  return plan;
}

ArmRuns runs_in(const ArmRuns& arm, const std::set<std::string>& pairs) {
  ArmRuns result{.value = arm.value, .runs = {}};
  std::ranges::copy_if(arm.runs, std::back_inserter(result.runs),
                       [&](const Observation& observation) { return pairs.contains(observation.pair); });
  return result;
}

}  // namespace trainyard::reports
