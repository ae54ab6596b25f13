#include "reports/verdicts/interim_analyses.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/verdicts/differences.h"
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
  number("alpha", first.alpha, now.alpha);
  add_change(changes, "final", first.final_look ? "true" : "false", now.final_look ? "true" : "false");
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

  InterimPlan result() {
    InterimPlan plan;
    plan.rules = first_.value_or(compare_);
    plan.changes = changes_since(plan.rules, compare_);
    plan.rules.pair = compare_.pair;  // the cells are built with the new pairing: a change is only noted
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

  // Abandoned runs were planned, never finished and are not in the latest plan. Looks with them can never be
  // complete. The other seeds are one more look. A removed result is not abandoned.
  void add_without_abandoned() {
    Pairs left = looks_.empty() ? Pairs{} : looks_.back();
    for (const ArmRuns* arm : {&cell_.baseline, &arm_})
      for (const Observation& observation : arm->runs)
        if (is_open(observation) && !was_removed(data_, observation) &&
            !planned_last_.contains(observation.pair))
          left.erase(observation.pair);
    if (left.size() >= static_cast<std::size_t>(fewest_pairs)) add_look(left);
  }

  const ReportData& data_;
  const experiments::Compare& compare_;
  const CellRuns& cell_;
  const ArmRuns& arm_;
  std::map<std::string, std::string> baseline_keys_;
  std::map<std::string, std::string> arm_keys_;
  std::optional<experiments::Compare> first_;
  Pairs baseline_;
  Pairs arm_pairs_;
  Pairs planned_last_;
  std::vector<Pairs> looks_;
};

}  // namespace

bool same_comparison(const experiments::Compare& a, const experiments::Compare& b) {
  return a.axis == b.axis && a.baseline == b.baseline;
}

InterimPlan plan_interim_analyses(const ReportData& data, const experiments::Compare& compare,
                                  const CellRuns& cell, const ArmRuns& arm) {
  Planner planner(data, compare, cell, arm);
  for (const db::PlanEntry& entry : data.history) planner.take(entry);
  return planner.result();
}

ArmRuns runs_in(const ArmRuns& arm, const std::set<std::string>& look) {
  ArmRuns result{.value = arm.value, .runs = {}};
  std::ranges::copy_if(arm.runs, std::back_inserter(result.runs),
                       [&](const Observation& observation) { return look.contains(observation.pair); });
  return result;
}

namespace {

void decide_diverged(TestedVerdict& verdict, const Differences& differences, const ArmRuns& baseline) {
  verdict.diverged = true;
  const auto because = [](const std::string& text) {
    return Reason{ReasonKind::diverged, "diverged: " + text};
  };
  const auto only = [&](const std::string& diverged, const std::string& other) {
    return because(fmt::format("the loss of {} is not finite, that of {} is", diverged, other));
  };
  if (differences.arm_diverged && !differences.baseline_diverged) {
    verdict.kind = VerdictKind::deteriorates;
    verdict.reason = only(verdict.arm, baseline.value);
  } else if (differences.baseline_diverged && !differences.arm_diverged) {
    verdict.kind = VerdictKind::improves;
    verdict.reason = only(baseline.value, verdict.arm);
  } else {
    verdict.reason = because("the loss is not finite in both arms");
  }
}

std::string too_few(const TestedVerdict& verdict, bool paired) {
  return "only " + (paired ? counted(verdict.n, "pair") : counted(verdict.n, "run") + " in an arm") +
         ", at least 3 are needed";
}

// Adds effect and spread, or a reason if there are too few values.
void estimate(TestedVerdict& verdict, const Differences& differences, const Measure& measure, bool paired) {
  const std::size_t a = differences.baseline.size();
  const std::size_t b = differences.arm.size();
  verdict.n = static_cast<int>(std::min(a, b));
  verdict.baseline_mean = mean_of(differences.baseline);
  verdict.arm_mean = mean_of(differences.arm);
  if (verdict.n < fewest_pairs) verdict.reason = {ReasonKind::few_pairs, too_few(verdict, paired)};
  if (verdict.n < 1) return;
  const auto not_positive = [](double value) { return value <= 0; };
  if (verdict.scale == Scale::log_ratio && (std::ranges::any_of(differences.baseline, not_positive) ||
                                            std::ranges::any_of(differences.arm, not_positive))) {
    verdict.kind = VerdictKind::no_data;
    verdict.reason = {ReasonKind::no_ratio, "a value is 0 or negative, so there is no ratio"};
    verdict.n = 0;
    return;
  }
  if (verdict.n == 1) {
    verdict.difference = mean_difference(differences, measure);
  } else {
    verdict.estimate = estimate_of(differences, measure, paired);
  }
}

// No p-value and no planning value: more seeds of the same kind would not help.
void say_missing(TestedVerdict& verdict, const Differences& differences) {
  const bool placed = !differences.placement.empty();
  verdict.kind = placed ? VerdictKind::not_timed : VerdictKind::no_data;
  const ReasonKind missing = differences.load ? ReasonKind::load : ReasonKind::no_values;
  verdict.reason = placed ? Reason{ReasonKind::placement, differences.placement}
                          : Reason{missing, differences.missing, differences.load};
}

TestedVerdict at_look(const ArmRuns& baseline, const ArmRuns& arm, const Metric& metric,
                      const Differences& differences, const experiments::Compare& rules) {
  TestedVerdict verdict;
  verdict.metric = metric.name;
  verdict.arm = arm.value;
  verdict.dropped = differences.dropped;
  const Measure measure = measure_for(differences, metric, rules.margins);
  verdict.scale = measure.scale;
  verdict.delta = measure.margin;
  estimate(verdict, differences, measure, !rules.pair.empty());
  if (differences.open_runs > 0) {
    verdict.kind = VerdictKind::interim;
    verdict.reason = {ReasonKind::planned_runs,
                      counted(differences.open_runs, "planned run") + " not finished yet"};
  } else if (differences.diverged()) {
    decide_diverged(verdict, differences, baseline);
  } else if (!differences.missing.empty()) {
    say_missing(verdict, differences);
  } else if (verdict.n >= fewest_pairs && verdict.estimate) {
    verdict.tested = true;
    verdict.constant = is_constant(*verdict.estimate, verdict.delta);
    verdict.three_sided = three_sided_test(*verdict.estimate, verdict.delta);
  }
  if (differences.warm_up_counts)
    verdict.notes.emplace_back("runs of fewer than 3 epochs: the warm-up epoch is included");
  return verdict;
}

std::vector<std::string> keys_of(const ArmRuns& arm) {
  std::vector<std::string> keys;
  for (const Observation& observation : arm.runs) keys.push_back(observation.run->run_key);
  return keys;
}

}  // namespace

std::vector<TestedVerdict> at_looks(const CellRuns& cell, const ArmRuns& arm, const Metric& metric,
                                    const InterimPlan& plan) {
  std::vector<TestedVerdict> looks;
  for (const std::set<std::string>& pairs : plan.looks) {
    const ArmRuns baseline = runs_in(cell.baseline, pairs);
    const ArmRuns compared = runs_in(arm, pairs);
    const Differences differences = collect_differences(baseline, compared, metric, plan.rules);
    TestedVerdict verdict = at_look(baseline, compared, metric, differences, plan.rules);
    verdict.look = static_cast<int>(looks.size()) + 1;
    verdict.looks = static_cast<int>(plan.looks.size());
    verdict.look_level = level_of_look(looks.size(), plan.rules.alpha, plan.rules.final_look);
    verdict.alpha = plan.rules.alpha;
    verdict.baseline_runs = keys_of(baseline);
    verdict.arm_runs = keys_of(compared);
    const std::vector<std::string> alone = without_partner(cell.baseline, arm, plan.rules);
    verdict.dropped.insert(verdict.dropped.end(), alone.begin(), alone.end());
    looks.push_back(std::move(verdict));
  }
  return looks;
}

}  // namespace trainyard::reports
