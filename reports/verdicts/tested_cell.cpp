#include "reports/verdicts/tested_cell.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/verdicts/differences.h"

namespace trainyard::reports {

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

std::string too_few(const TestedVerdict& verdict, bool paired, int least) {
  return "only " + (paired ? counted(verdict.n, "pair") : counted(verdict.n, "run") + " in an arm") +
         fmt::format(", at least {} are needed", least);
}

// No p-value and no planning value: more seeds of the same kind would not help.
void say_missing(TestedVerdict& verdict, const Differences& differences) {
  verdict.kind = VerdictKind::no_data;
  verdict.reason = {differences.load ? ReasonKind::load : ReasonKind::no_values, differences.missing,
                    differences.load};
}

std::vector<std::string> keys_of(const ArmRuns& arm) {
  std::vector<std::string> keys;
  for (const Observation& observation : arm.runs) keys.push_back(observation.run->run_key);
  return keys;
}

// Removes the first pair with a run that `ends`, and those behind it. Returns their number.
int keep_before(ArmRuns& baseline, ArmRuns& arm, bool (*ends)(const Observation&)) {
  std::set<std::string> kept;
  int after = 0;
  for (const Observation& run : baseline.runs) {
    const Observation* other = partner_of(run, arm);
    if (other == nullptr) continue;
    if (after > 0 || ends(run) || ends(*other))
      ++after;
    else
      kept.insert(run.pair);
  }
  baseline = runs_in(baseline, kept);
  arm = runs_in(arm, kept);
  return after;
}

// Pairs whose times nobody needed when they were trained.
int pairs_without_times(const ArmRuns& baseline, const ArmRuns& arm) {
  const auto untimed = [](const Observation* run) {
    return run != nullptr && run->final != nullptr && run->final->times_problem == db::times_not_needed;
  };
  return static_cast<int>(std::ranges::count_if(
      baseline.runs, [&](const Observation& run) { return untimed(&run) || untimed(partner_of(run, arm)); }));
}

// 100 / the number of samples on which a proportion of samples is measured; 0 for other metrics, or if it is not known.
double step_of(const ReportData& data, const ArmRuns& baseline, const Metric& metric) {
  if (!metric.kind->is_fraction() || metric.kind->least < 0) return 0;
  double samples = 0;
  for (const Observation& run : baseline.runs) {
    const db::RunEvidence* evidence = value_or_null(data.evidence, run.run->run_key);
    if (evidence == nullptr) continue;
    const double own = metric.column.starts_with("train")  ? evidence->samples_an_epoch
                       : metric.column.starts_with("test") ? evidence->test_samples
                                                           : evidence->validation_samples;
    samples = std::max(samples, own);  // ignores NaN
  }
  return samples > 0 ? metric.kind->scale / samples : 0;
}

// The measure does not change from look to look.
Measure measure_of(Differences differences, const Metric& metric, const FirstPlan& plan) {
  const auto first = static_cast<std::size_t>(plan.looks.first);
  if (!plan.rules.pair.empty() && differences.baseline.size() > first) differences.baseline.resize(first);
  Measure measure = measure_for(differences, metric, plan.rules.margins);
  const bool usually_higher = measure.scale == Scale::points || measure.scale == Scale::decibels;
  if (metric.higher_is_better() != usually_higher) measure.sign = -1;
  return measure;
}

bool has_ratio(const TestedCell& tested) {
  const auto not_positive = [](double value) { return value <= 0; };
  return std::ranges::none_of(tested.baseline, not_positive) &&
         std::ranges::none_of(tested.arm, not_positive);
}

// Adds effect and spread, or a reason if there are fewer values than `least`.
void estimate(TestedCell& tested, const Measure& measure, bool paired, int least) {
  TestedVerdict& verdict = tested.verdict;
  verdict.n = static_cast<int>(std::min(tested.baseline.size(), tested.arm.size()));
  verdict.baseline_mean = mean_of(tested.baseline);
  verdict.arm_mean = mean_of(tested.arm);
  if (verdict.n < least) verdict.reason = {ReasonKind::few_pairs, too_few(verdict, paired, least)};
  if (verdict.n < 1) return;
  if (verdict.scale == Scale::log_ratio && !has_ratio(tested)) {
    verdict.kind = VerdictKind::no_data;
    verdict.reason = {ReasonKind::no_ratio, "a value is 0 or negative, so there is no ratio"};
    verdict.n = 0;
    return;
  }
  const std::vector<double> baseline = transformed(tested.baseline, measure);
  const std::vector<double> arm = transformed(tested.arm, measure);
  if (paired) std::ranges::transform(arm, baseline, std::back_inserter(tested.differences), std::minus());
  if (verdict.n == 1)
    verdict.difference = mean_of(arm) - mean_of(baseline);
  else if (paired)
    verdict.estimate = with_least_spread(paired_estimate(tested.differences), tested.least_spread);
  else
    verdict.estimate = welch_estimate(baseline, arm);
}

// The p after each look. `looks`: those of the plan; all pairs are one look if the plan has one.
void test(TestedCell& tested, Looks looks) {
  TestedVerdict& verdict = tested.verdict;
  verdict.constant = is_constant(*verdict.estimate, verdict.delta);
  verdict.tested = true;
  if (tested.differences.empty()) {
    tested.looks = {
        .p = {verdict.constant ? ThreeSided{} : three_sided_test(*verdict.estimate, verdict.delta)},
        .first = verdict.n};
    return;
  }
  if (!looks.several()) looks = {verdict.n, verdict.n};
  tested.looks = {sequential_p(tested.differences, verdict.delta, looks, tested.least_spread), looks.first};
}

// "ddp: four ranks on two devices".
void note_sharing(std::initializer_list<const ArmRuns*> arms, TestedVerdict& verdict) {
  for (const ArmRuns* arm : arms) {
    const auto shares = std::ranges::find_if(arm->runs, [](const Observation& run) {
      return run.launched != nullptr && !sharing_text(*run.launched).empty();
    });
    if (shares != arm->runs.end())
      verdict.notes.push_back(fmt::format("{}: {}", arm->value, sharing_text(*shares->launched)));
  }
}

// The verdict of these runs. `finished`: pairs of a range that have finished.
void judge_runs(const ReportData& data, const ArmRuns& baseline, const ArmRuns& arm, const Metric& metric,
                const FirstPlan& plan, int finished, TestedCell& tested) {
  const bool paired = !plan.rules.pair.empty();
  const int least = plan.looks.several() ? std::max(fewest_pairs, plan.looks.first) : fewest_pairs;
  TestedVerdict& verdict = tested.verdict;
  const Differences differences = collect_differences(baseline, arm, metric, plan.rules);
  const Measure measure = measure_of(differences, metric, plan);
  verdict.scale = measure.scale;
  verdict.delta = measure.margin;
  verdict.sign = measure.sign;
  verdict.dropped = differences.dropped;
  tested.least_spread = paired ? step_of(data, baseline, metric) : 0;
  tested.baseline = differences.baseline;
  tested.arm = differences.arm;
  estimate(tested, measure, paired, least);
  if (verdict.reason.kind == ReasonKind::no_ratio && !metric.own_name.empty())
    verdict.reason.text +=
        fmt::format("; [metric.{}] of the file needs a margin before the first run", metric.own_name);
  if (differences.open_runs > 0 || (tested.open_pairs > 0 && finished < plan.looks.first)) {
    verdict.kind = VerdictKind::interim;
    verdict.reason = {ReasonKind::planned_runs,
                      plan.looks.several()
                          ? fmt::format("{} of at most {} pairs have finished", finished, plan.looks.last)
                          : counted(differences.open_runs, "planned run") + " not finished yet"};
  } else if (differences.diverged()) {
    decide_diverged(verdict, differences, baseline);
  } else if (!differences.missing.empty()) {
    say_missing(verdict, differences);
  } else if (verdict.n >= least && verdict.estimate) {
    test(tested, plan.looks);
  }
  if (!metric.about.empty()) verdict.notes.push_back(metric.about);
  if (metric.kind->is_cost()) note_sharing({&baseline, &arm}, verdict);
  if (differences.warm_up_counts)
    verdict.notes.emplace_back("runs of fewer than 3 epochs: the warm-up epoch is included");
  if (differences.disturbed_epochs > 0)
    verdict.notes.push_back(fmt::format("other processes disturbed {} of {} timed epochs, which are left out",
                                        differences.disturbed_epochs,
                                        differences.disturbed_epochs + differences.timed_epochs));
}

}  // namespace

TestedCell tested_cell(const ReportData& data, const CellRuns& cell, const ArmRuns& arm, const Metric& metric,
                       const FirstPlan& plan) {
  ArmRuns baseline = runs_in(cell.baseline, plan.pairs);
  ArmRuns compared = runs_in(arm, plan.pairs);
  TestedCell tested;
  TestedVerdict& verdict = tested.verdict;
  verdict.metric = metric.name;
  verdict.arm = arm.value;
  verdict.alpha = plan.rules.alpha;
  verdict.first_look = plan.looks.first;
  verdict.last_look = plan.looks.last;
  verdict.baseline_runs = keys_of(baseline);
  verdict.arm_runs = keys_of(compared);
  if (plan.looks.several()) {
    tested.open_pairs = keep_before(baseline, compared, is_open);
    if (metric.kind->is_cost()) tested.open_pairs += pairs_without_times(baseline, compared);
  }
  const auto finished = static_cast<int>(std::min(baseline.runs.size(), compared.runs.size()));
  TestedCell all = tested;
  judge_runs(data, baseline, compared, metric, plan, finished, all);
  if (plan.looks.several() && all.verdict.diverged) {
    keep_before(baseline, compared, has_diverged);
    judge_runs(data, baseline, compared, metric, plan, finished, tested);
    if (tested.verdict.tested) tested.diverged = all.verdict;
  }
  TestedCell& result = tested.diverged ? tested : all;
  std::ranges::copy(without_partner(cell.baseline, arm, plan.rules),
                    std::back_inserter(result.verdict.dropped));
  return std::move(result);
}

std::optional<TestedCell> tested_later(const ReportData& data, const CellRuns& cell, const ArmRuns& arm,
                                       const Metric& metric, const FirstPlan& plan) {
  if (plan.later.empty()) return std::nullopt;
  FirstPlan all = plan;
  all.pairs.insert(plan.later.begin(), plan.later.end());
  const int last = static_cast<int>(all.pairs.size());
  all.looks = {last, last};
  TestedCell tested = tested_cell(data, cell, arm, metric, all);
  if (!tested.verdict.tested) return std::nullopt;
  return tested;
}

void keep_pairs(TestedCell& tested, int n) {
  const auto count = static_cast<std::size_t>(n);
  if (tested.differences.size() <= count) return;
  for (std::vector<double>* values : {&tested.differences, &tested.baseline, &tested.arm})
    values->resize(count);
  TestedVerdict& verdict = tested.verdict;
  verdict.n = n;
  verdict.baseline_mean = mean_of(tested.baseline);
  verdict.arm_mean = mean_of(tested.arm);
  verdict.estimate = with_least_spread(paired_estimate(tested.differences), tested.least_spread);
}

}  // namespace trainyard::reports
