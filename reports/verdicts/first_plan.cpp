#include "reports/verdicts/first_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/statistics/sequential.h"
#include "reports/statistics/statistics.h"

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

// Whether the run had a result that was removed. It is planned, and counts as not finished.
bool was_removed(const ReportData& data, const Observation& observation) {
  return observation.final == nullptr && data.earlier.contains(observation.run->run_key);
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

// What weakens a verdict because of how its runs were planned.

namespace {

constexpr std::size_t most_named = 12;

// "seeds 1, 2, 3", "seed=1 fold=0, seed=2 fold=0", "runs 3f…, 8a…"; at most twelve, then a count.
std::string pairs_text(const std::vector<std::string>& pairs, const experiments::Compare& compare) {
  const std::string of = compare.pair.empty() ? "run" : compare.pair.size() == 1 ? compare.pair.front() : "";
  std::string text = of.empty() ? "" : of + (pairs.size() == 1 ? " " : "s ");
  text += joined(std::span(pairs).first(std::min(pairs.size(), most_named)));
  return pairs.size() > most_named ? fmt::format("{} and {} more", text, pairs.size() - most_named) : text;
}

// --- REMOVED

std::optional<Caveat> removed(const ReportData& data, const experiments::Compare& compare,
                              const CellRuns& cell, const ArmRuns& arm) {
  std::vector<std::string> pairs;
  std::size_t planned = 0;
  const auto take = [&](const std::string& name, bool lost) {
    ++planned;
    if (lost) pairs.push_back(name);
  };
  if (compare.pair.empty()) {
    for (const ArmRuns* side : {&cell.baseline, &arm})
      for (const Observation& run : side->runs) take(run.run->run_key, was_removed(data, run));
  } else {
    for (const Observation& run : cell.baseline.runs)
      if (const Observation* other = partner_of(run, arm))
        take(run.pair, was_removed(data, run) || was_removed(data, *other));
  }
  if (pairs.empty()) return std::nullopt;
  return Caveat{"REMOVED", fmt::format("{} of {} planned {} {} removed: {}", pairs.size(), planned,
                                       compare.pair.empty() ? "runs" : "pairs",
                                       pairs.size() == 1 ? "was" : "were", pairs_text(pairs, compare))};
}

// --- EXPLORATORY

// When each run was first planned for this comparison, under its present label. By run key. Times count, and not the order
// of the entries: a damaged journal may have them in another order.
std::map<std::string, std::string> planned_times(const ReportData& data,
                                                 const experiments::Compare& compare) {
  std::map<std::string, std::string> label;
  for (const db::RunSummary& run : data.runs) label[run.run_key] = run.strategy;
  std::map<std::string, std::string> times;
  for (const db::PlanEntry& entry : data.history) {
    const auto same = [&](const experiments::Compare& one) { return same_comparison(one, compare); };
    if (std::ranges::none_of(entry.compare, same)) continue;
    for (std::size_t i = 0; i < entry.keys.size(); ++i)
      if (i >= entry.strategies.size() || entry.strategies[i] == label[entry.keys[i]]) {
        std::string& time = times.try_emplace(entry.keys[i], entry.time).first->second;
        time = std::min(time, entry.time);
      }
  }
  return times;
}

// When the first result of the run was launched; empty if it has none. The orchestrator's clock made this time
// and those of the plans.
std::string first_launch(const ReportData& data, const Observation& run) {
  std::string first = run.final == nullptr ? "" : run.final->launched;
  if (const auto* earlier = value_or_null(data.earlier, run.run->run_key))
    for (const db::EarlierResult& result : *earlier)
      if (first.empty() || result.launched < first) first = result.launched;
  return first;
}

// The pairs whose runs both had results before they were planned as a pair.
std::vector<std::string> seen_before(const ReportData& data, const experiments::Compare& compare,
                                     const CellRuns& cell, const ArmRuns& arm) {
  const std::map<std::string, std::string> times = planned_times(data, compare);
  const auto planned = [&](const Observation& run) {
    const std::string* time = value_or_null(times, run.run->run_key);
    return time == nullptr ? std::string() : *time;
  };
  std::vector<std::string> pairs;
  for (const Observation& run : cell.baseline.runs) {
    const Observation* other =
        compare.pair.empty() ? (arm.runs.empty() ? nullptr : &arm.runs.front()) : partner_of(run, arm);
    if (other == nullptr) continue;
    const std::string plan = std::max(planned(run), planned(*other));
    const std::array launches{first_launch(data, run), first_launch(data, *other)};
    if (std::ranges::all_of(launches, [&](const std::string& one) { return !one.empty() && one < plan; }))
      pairs.push_back(compare.pair.empty() ? run.run->run_key : run.pair);
  }
  return pairs;
}

std::optional<Caveat> exploratory(const ReportData& data, const experiments::Compare& compare,
                                  const CellRuns& cell, const ArmRuns& arm) {
  if (!data.selected.empty())
    return Caveat{exploratory_mark, "from a selection of the planned runs: " + data.selected};
  const std::vector<std::string> pairs = seen_before(data, compare, cell, arm);
  if (pairs.empty()) return std::nullopt;
  return Caveat{exploratory_mark, fmt::format("{} had results before this comparison was planned: {}",
                                              compare.pair.empty() ? "these runs"
                                              : pairs.size() == 1  ? "this pair"
                                                                   : "these pairs",
                                              pairs_text(pairs, compare))};
}

// --- VERSIONS

std::string ordinal(std::size_t number) {
  static constexpr std::array words{"first", "second", "third", "fourth", "fifth", "sixth"};
  return number <= words.size() ? words[number - 1] : fmt::format("{}th", number);
}

std::optional<Caveat> versions(const ArmRuns& arm, const std::string& what) {
  if (arm.earlier_versions == 0) return std::nullopt;
  return Caveat{"VERSIONS",
                fmt::format("{} version of {} {}: {} had results before", ordinal(arm.earlier_versions + 1),
                            what, arm.value, counted_in_words(arm.earlier_versions, "other version"))};
}

// --- REPLACED

// The first result that a later one may not replace without a remark; null if there is none.
const db::EarlierResult* first_valid(const ReportData& data, const Observation& run, const Metric& metric) {
  const auto* earlier = value_or_null(data.earlier, run.run->run_key);
  if (earlier == nullptr || run.final == nullptr) return nullptr;
  for (const db::EarlierResult& result : *earlier) {
    if (result.attempt >= run.final->attempt) break;
    if (!metric.kind->is_cost() || result.times_problem.empty()) return &result;
  }
  return nullptr;
}

// A mean as it is shown: "50.2 %", "1.4 s".
std::string shown_mean(const std::vector<double>& values, const MetricKind& kind) {
  return plain_number(mean_of(values), 5) + kind.suffix();
}

bool is_same(double before, double after) {
  return before == after || (!std::isfinite(before) && !std::isfinite(after));
}

std::optional<Caveat> replaced(const ReportData& data, const experiments::Compare& compare,
                               const ArmRuns& arm, const Metric& metric) {
  std::vector<std::string> pairs;
  std::vector<double> before;
  std::vector<double> after;
  for (const Observation& run : arm.runs) {
    const db::EarlierResult* first = first_valid(data, run, metric);
    if (first == nullptr) continue;
    const double was = first->values[final_column(metric)];
    const double is = (*run.final)[final_column(metric)];
    if (is_same(was, is)) continue;
    pairs.push_back(compare.pair.empty() ? run.run->run_key : run.pair);
    if (std::isfinite(was)) before.push_back(metric.kind->scale * was);
    if (std::isfinite(is)) after.push_back(metric.kind->scale * is);
  }
  if (pairs.empty()) return std::nullopt;
  return Caveat{replaced_mark,
                fmt::format("{} of {} {} replaced after being seen: mean before {}, mean after {} ({})",
                            counted(pairs.size(), "result"), arm.value, pairs.size() == 1 ? "was" : "were",
                            shown_mean(before, *metric.kind), shown_mean(after, *metric.kind),
                            pairs_text(pairs, compare))};
}

}  // namespace

std::vector<Caveat> plan_caveats(const ReportData& data, const experiments::Compare& compare,
                                 const CellRuns& cell, const ArmRuns& arm) {
  std::vector<Caveat> caveats;
  for (const std::optional<Caveat>& one :
       {removed(data, compare, cell, arm), exploratory(data, compare, cell, arm),
        versions(cell.baseline, "the baseline"), versions(arm, "arm")})
    if (one) caveats.push_back(*one);
  return caveats;
}

std::vector<Caveat> replaced_results(const ReportData& data, const experiments::Compare& compare,
                                     const CellRuns& cell, const ArmRuns& arm, const Metric& metric) {
  std::vector<Caveat> caveats;
  for (const ArmRuns* side : {&cell.baseline, &arm})
    if (const std::optional<Caveat> one = replaced(data, compare, *side, metric)) caveats.push_back(*one);
  return caveats;
}

}  // namespace trainyard::reports
