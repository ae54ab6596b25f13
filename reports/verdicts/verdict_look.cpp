#include "reports/verdicts/verdict_look.h"

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "reports/verdicts/differences.h"

namespace trainyard::reports {

namespace {

void decide_diverged(Verdict& verdict, const Differences& differences, const Arm& baseline) {
  verdict.diverged = true;
  if (differences.arm_diverged && !differences.baseline_diverged) {
    verdict.word = Word::deteriorates;
    verdict.reason =
        "diverged: the loss of " + verdict.arm + " is no number where that of " + baseline.value + " is one";
  } else if (differences.baseline_diverged && !differences.arm_diverged) {
    verdict.word = Word::improves;
    verdict.reason =
        "diverged: the loss of " + baseline.value + " is no number where that of " + verdict.arm + " is one";
  } else {
    verdict.reason = "diverged: the loss of both arms is no number";
  }
}

std::string too_few(const Verdict& verdict, bool paired) {
  return "only " +
         (paired ? models::counted(verdict.n, "pair") : models::counted(verdict.n, "run") + " in an arm") +
         ", at least 3 are needed";
}

// Effect and spread, where there are numbers enough; a reason where there are not.
void estimate(Verdict& verdict, const Differences& differences, const Measure& measure, bool paired) {
  const std::size_t a = differences.baseline.size();
  const std::size_t b = differences.arm.size();
  verdict.n = static_cast<int>(std::min(a, b));
  verdict.baseline_mean = mean_of(differences.baseline);
  verdict.arm_mean = mean_of(differences.arm);
  if (verdict.n < fewest_pairs) verdict.reason = too_few(verdict, paired);
  if (verdict.n < 1) return;
  const auto not_positive = [](double value) { return value <= 0; };
  if (verdict.scale == Scale::log_ratio && (std::ranges::any_of(differences.baseline, not_positive) ||
                                            std::ranges::any_of(differences.arm, not_positive))) {
    verdict.word = Word::no_data;
    verdict.reason = "a value of 0 has no ratio";
    verdict.n = 0;
    return;
  }
  if (verdict.n == 1) {
    verdict.difference = mean_difference(differences, measure);
  } else {
    verdict.estimate = estimate_of(differences, measure, paired);
  }
}

// More seeds of the same kind would not help: no p-value, no planning value.
void say_missing(Verdict& verdict, const Differences& differences) {
  const bool placed = !differences.placement.empty();
  verdict.word = placed ? Word::not_timed : Word::no_data;
  verdict.reason = placed ? differences.placement : differences.missing;
}

Verdict at_look(const Arm& baseline, const Arm& arm, const Metric& metric, const Differences& differences,
                const experiments::Compare& rules) {
  Verdict verdict;
  verdict.metric = metric.name;
  verdict.arm = arm.value;
  verdict.dropped = differences.dropped;
  const Measure measure = measure_for(differences, metric, rules.margins);
  verdict.scale = measure.scale;
  verdict.margin = measure.margin;
  estimate(verdict, differences, measure, !rules.pair.empty());
  if (differences.open_runs > 0) {
    verdict.word = Word::interim;
    verdict.reason = models::counted(differences.open_runs, "planned run") + " not finished yet";
  } else if (differences.diverged()) {
    decide_diverged(verdict, differences, baseline);
  } else if (!differences.missing.empty()) {
    say_missing(verdict, differences);
  } else if (verdict.n >= fewest_pairs && verdict.estimate) {
    verdict.tested = true;
    verdict.constant = is_constant(*verdict.estimate, verdict.margin);
    verdict.p = three_sided_test(*verdict.estimate, verdict.margin);
  }
  if (differences.warm_up_counts)
    verdict.notes.emplace_back("runs of fewer than 3 epochs: the warm-up epoch counts");
  return verdict;
}

std::vector<std::string> keys_of(const Arm& arm) {
  std::vector<std::string> keys;
  for (const Observation& observation : arm.runs) keys.push_back(observation.run->run_key);
  return keys;
}

}  // namespace

std::vector<Verdict> at_looks(const Cell& cell, const Arm& arm, const Metric& metric, const LookPlan& plan) {
  std::vector<Verdict> looks;
  for (const std::set<std::string>& pairs : plan.looks) {
    const Arm baseline = runs_in(cell.baseline, pairs);
    const Arm compared = runs_in(arm, pairs);
    const Differences differences = collect_differences(baseline, compared, metric, plan.rules);
    Verdict verdict = at_look(baseline, compared, metric, differences, plan.rules);
    verdict.look = static_cast<int>(looks.size()) + 1;
    verdict.looks = static_cast<int>(plan.looks.size());
    verdict.level = level_of_look(looks.size(), plan.rules.alpha, plan.rules.final_look);
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
