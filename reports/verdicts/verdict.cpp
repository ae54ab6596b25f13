#include "reports/verdicts/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/statistics/power_analysis.h"
#include "reports/verdicts/differences.h"
#include "reports/verdicts/first_plan.h"
#include "reports/verdicts/tested_cell.h"

namespace trainyard::reports {

namespace {

// One cell, arm and metric.
struct Hypothesis {
  std::size_t cell = 0;
  std::size_t place = 0;  // of its verdict in the cell
  bool of_strategies = false;
  bool has_parity_check = false;
  const Comparability* comparability = nullptr;
  TestedCell tested;
  std::optional<TestedCell> later;   // with the pairs of later plans
  bool later_open = false;           // one of these has not finished
  std::vector<std::string> changes;  // of the rules since the first plan
  std::vector<Caveat> caveats;
};

Looks looks_of(const Verdict& verdict) {
  return {.first = verdict.first_look, .last = verdict.last_look};
}

void plan_seeds(TestedVerdict& verdict, double holm_level) {
  const Estimate& estimate = *verdict.estimate;
  const auto needed = [&](double spread) {
    return seeds_needed(estimate.mean, spread, verdict.delta, holm_level);
  };
  verdict.seeds_needed = needed(estimate.spread);
  verdict.cannot_be_resolved = !verdict.seeds_needed;
  if (verdict.seeds_needed) {
    verdict.reason = {ReasonKind::few_seeds,
                      fmt::format("too few seeds: plan about {} in total", *verdict.seeds_needed)};
    return;
  }
  verdict.seeds_needed = needed(lowest_spread(estimate.spread, estimate.freedom));
  verdict.reason = {ReasonKind::narrow_margin,
                    "too few seeds for this margin: plan " + least_seeds(verdict.seeds_needed) + " in total"};
}

// "all 7 differences are equal, and were tested by signs: up to 35 % of the runs may differ".
std::string constant_text(const TestedVerdict& verdict) {
  if (verdict.kind == VerdictKind::inconclusive)
    return "all differences are equal, and too few to be tested by their signs";
  const double others = 1 - std::pow(verdict.alpha, 1.0 / verdict.n);
  return fmt::format(
      "all {} differences are equal, so their signs were tested; up to {:.0f} % of other seeds may differ",
      verdict.n, 100 * others);
}

void take_decision(TestedVerdict& verdict, const SequentialDecision& decision) {
  verdict.three_sided = decision.p;
  verdict.adjusted_p = decision.adjusted_p;
  verdict.kind = decision.kind;
  if (verdict.constant)
    verdict.reason = {ReasonKind::constant, constant_text(verdict)};
  else if (verdict.kind == VerdictKind::inconclusive)
    plan_seeds(verdict, decision.holm_level);
  if (!looks_of(verdict).several() || verdict.kind == VerdictKind::inconclusive) return;
  std::string note = fmt::format("{}{} of at most {} pairs", decided_after, verdict.n, verdict.last_look);
  if (decision.earned < verdict.n) note += fmt::format(", on its first {} pairs", decision.earned);
  verdict.notes.push_back(std::move(note));
}

bool in_family(const Hypothesis& one) {
  const TestedVerdict& verdict = one.tested.verdict;
  const Comparability& found = *one.comparability;
  if (!found.broken.empty() || !refusal(found, find_metric(verdict.metric)).empty()) return false;
  return verdict.tested || verdict.kind == VerdictKind::interim ||
         (one.tested.open_pairs > 0 && !verdict.diverged);
}

// Replaces the verdict by `kind`. Effect and intervals stay, as they may help to find the reason.
void refuse(TestedVerdict& verdict, VerdictKind kind, const Reason& why) {
  verdict.kind = kind;
  verdict.reason = why;
  verdict.tested = false;
}

void apply(const Hypothesis& one, TestedVerdict& verdict) {
  const Comparability& found = *one.comparability;
  verdict.verified = found.verified();
  const Metric& metric = find_metric(verdict.metric);
  if (!metric.kind->is_cost())
    verdict.caveats.insert(verdict.caveats.end(), found.caveats.begin(), found.caveats.end());
  for (const std::string& declared : found.declared) verdict.notes.push_back("declared: " + declared);
  if (!found.broken.empty()) {
    refuse(verdict, VerdictKind::broken, {ReasonKind::broken, found.broken});
  } else if (const std::string why = refusal(found, metric); !why.empty()) {
    refuse(verdict, VerdictKind::not_comparable, {ReasonKind::not_comparable, why});
  }
}

// A difference as a change: percent, points, dB or units of loss.
double change_of(const TestedVerdict& verdict, double difference) {
  const double signed_difference = verdict.sign * difference;
  if (verdict.scale == Scale::log_ratio) return 100 * std::expm1(-signed_difference);
  return verdict.scale == Scale::absolute ? -signed_difference : signed_difference;
}

Interval shown(const TestedVerdict& verdict, const Interval& differences) {
  const double first = change_of(verdict, differences.low);
  const double second = change_of(verdict, differences.high);
  return {std::min(first, second), std::max(first, second)};
}

// The interval of the effect at all looks of the plan together.
Interval interval_of(const TestedVerdict& verdict, double confidence) {
  return shown(verdict, looks_of(verdict).several()
                            ? repeated_interval(*verdict.estimate, confidence, looks_of(verdict))
                            : confidence_interval(*verdict.estimate, confidence));
}

// A shift is decided by the interval of 1 − h, equivalence by that of 1 − 2 h. `holm_level`: h.
std::optional<DecisionInterval> decision_interval(const TestedVerdict& verdict, double holm_level) {
  if (!verdict.tested || verdict.constant || !verdict.ci95 || !verdict.margin || holm_level <= 0) return {};
  const auto& [low, high] = *verdict.ci95;
  const bool inside = verdict.margin->low <= low && high <= verdict.margin->high;
  const bool outside = high < verdict.margin->low || verdict.margin->high < low;
  const bool no_change = verdict.kind == VerdictKind::no_change;
  const bool contradicts =
      no_change ? !inside : verdict.kind == VerdictKind::inconclusive && (inside || outside);
  if (!contradicts) return {};
  const double confidence = 1 - (outside ? 1 : 2) * holm_level;
  return DecisionInterval{confidence, interval_of(verdict, confidence)};
}

std::string hypothesis_text(const ThreeSided& p) {
  const VerdictKind smallest = smallest_hypothesis(p);
  if (smallest == VerdictKind::no_change) return "inside the margin";
  return smallest == VerdictKind::improves ? "better than the margin" : "worse than the margin";
}

// Sets the numbers that publishing reads.
void set_numbers(TestedVerdict& verdict) {
  if (verdict.difference) verdict.effect = change_of(verdict, *verdict.difference);
  if (verdict.estimate) {
    verdict.effect = change_of(verdict, verdict.estimate->mean);
    verdict.ci95 = interval_of(verdict, 0.95);
    verdict.ci90 = interval_of(verdict, 0.90);
  }
  if (verdict.delta > 0) verdict.margin = shown(verdict, {-verdict.delta, verdict.delta});
  if (!verdict.tested) return;
  verdict.p = verdict.adjusted_p;
  verdict.hypothesis = hypothesis_text(verdict.three_sided);
}

// The estimate of all pairs that have finished, if the word is based on fewer.
std::optional<LaterEstimate> later_estimate(const Hypothesis& one, const TestedVerdict& standing) {
  const TestedVerdict& last = one.later ? one.later->verdict : one.tested.verdict;
  if (!is_decided(standing.kind) || last.n <= standing.n) return std::nullopt;
  if (!last.estimate || last.scale != standing.scale) return std::nullopt;
  return LaterEstimate{last.n, change_of(last, last.estimate->mean), interval_of(last, 0.95)};
}

// The parity check has shown that the arm computes what the baseline computes, and all values of the first look are the
// same. Later pairs do not change that.
bool is_identical(const Hypothesis& one) {
  const TestedCell& tested = one.tested;
  if (!one.of_strategies || !one.has_parity_check || !one.comparability->declared.empty() ||
      !in_family(one) || !tested.verdict.tested)
    return false;
  const int first = looks_of(tested.verdict).several() ? tested.verdict.first_look : tested.verdict.n;
  return tested.differences.size() >= static_cast<std::size_t>(std::max(first, fewest_pairs)) &&
         std::all_of(tested.differences.begin(), tested.differences.begin() + first,
                     [](double difference) { return difference == 0; });
}

bool differs_by_rounding(const Hypothesis& one, const TestedVerdict& verdict) {
  const Comparability& found = *one.comparability;
  if (!one.of_strategies || !found.verified() || !found.declared.empty()) return false;
  if (verdict.kind != VerdictKind::no_change || !verdict.ci95 || !verdict.margin) return false;
  return std::max(std::abs(verdict.ci95->low), std::abs(verdict.ci95->high)) < verdict.margin->high / 1000;
}

TestedVerdict identical_verdict(const Hypothesis& one) {
  TestedCell kept = one.tested;
  if (looks_of(kept.verdict).several()) keep_pairs(kept, kept.verdict.first_look);
  TestedVerdict& verdict = kept.verdict;
  verdict.kind = VerdictKind::no_change;
  verdict.constant = true;
  verdict.caveats.push_back(
      {identical_mark,
       fmt::format("identical in {0} of {0} seeds; at 95 % confidence fewer than {1:.0f} % of seeds differ",
                   verdict.n, 100 * (1 - std::pow(0.05, 1.0 / verdict.n)))});
  return verdict;
}

// Advice that never changes a word: 1 % of independent normal differences give each note.
void note_diagnostics(const std::vector<double>& differences, TestedVerdict& verdict) {
  if (const auto order = order_diagnostic(differences); order && order->alarm())
    verdict.notes.push_back(
        fmt::format("differences of neighbouring seeds are alike (z = {:.1f}), so the test may be too sure",
                    order->score));
  if (const auto skewness = skewness_diagnostic(differences); skewness && skewness->alarm())
    verdict.notes.push_back(fmt::format(
        "the differences are skewed ({:.1f} standard errors): one arm may have bad runs of its own",
        skewness->score));
}

// The word, before the contract is applied.
TestedVerdict word_of(const Hypothesis& one, const SequentialDecision& decision) {
  if (one.tested.diverged && !is_decided(decision.kind)) return *one.tested.diverged;
  TestedCell kept = one.tested;
  if (is_decided(decision.kind)) keep_pairs(kept, decision.n);
  if (kept.verdict.tested && in_family(one)) {
    take_decision(kept.verdict, decision);
    note_diagnostics(kept.differences, kept.verdict);
  }
  return kept.verdict;
}

TestedVerdict verdict_of(const Hypothesis& one, const SequentialDecision& decision) {
  const bool identical = is_identical(one);
  TestedVerdict verdict = identical ? identical_verdict(one) : word_of(one, decision);
  verdict.notes.insert(verdict.notes.end(), one.changes.begin(), one.changes.end());
  verdict.caveats.insert(verdict.caveats.end(), one.caveats.begin(), one.caveats.end());
  apply(one, verdict);
  set_numbers(verdict);
  if (identical) {  // no test was needed
    verdict.p.reset();
    verdict.hypothesis.clear();
  }
  verdict.decision = decision_interval(verdict, decision.holm_level);
  verdict.later = later_estimate(one, verdict);
  verdict.identical = differs_by_rounding(one, verdict);
  return verdict;
}

// The word of all pairs, in place of one of the first plan that did not decide.
void take_later(const Hypothesis& one, const SequentialDecision& decision, TestedVerdict& verdict) {
  const std::string first =
      fmt::format("the first plan, of {} pairs, says {}", verdict.last_look, text_of(verdict.kind));
  if (is_decided(verdict.kind)) {
    if (is_decided(decision.kind) && decision.kind != verdict.kind)
      verdict.notes.push_back(fmt::format("all {} pairs, {}: {}", one.later->verdict.n, exploratory_mark,
                                          text_of(decision.kind)));
    return;
  }
  Hypothesis later = one;
  later.tested = *one.later;
  later.later.reset();
  TestedVerdict word = verdict_of(later, decision);
  word.caveats.push_back({exploratory_mark, "more seeds were planned when results could be seen: " + first});
  verdict = std::move(word);
}

// Family: one metric and one arm over all cells, without the cells that can never be tested.
// Cells that were first planned with another α share the smallest one.
void judge_family(std::vector<Hypothesis>& cases, std::vector<CellVerdicts>& cells) {
  double alpha = 1;
  for (const Hypothesis& one : cases) alpha = std::min(alpha, one.tested.verdict.alpha);
  for (Hypothesis& one : cases) {
    one.tested.verdict.alpha = alpha;
    if (one.later) one.later->verdict.alpha = alpha;
  }
  std::vector<SequentialCell> first;
  std::vector<SequentialCell> all;
  for (const Hypothesis& one : cases) {
    if (!in_family(one)) continue;
    first.push_back(one.tested.looks);
    all.push_back(one.later ? one.later->looks : one.tested.looks);
  }
  const std::vector<SequentialDecision> decisions = decide_family(first, alpha);
  const std::vector<SequentialDecision> of_all = decide_family(all, alpha);
  std::size_t next = 0;
  for (const Hypothesis& one : cases) {
    const bool member = in_family(one);
    TestedVerdict verdict = verdict_of(one, member ? decisions[next] : SequentialDecision{});
    if (member && one.later) take_later(one, of_all[next], verdict);
    if (member) ++next;
    cells[one.cell].verdicts[one.place] = std::move(verdict);
  }
}

// Whether further pairs of the plan may decide.
bool may_be_decided(const Hypothesis& one, const TestedVerdict& verdict) {
  if (verdict.kind == VerdictKind::interim) return true;
  if (is_decided(verdict.kind) || verdict.diverged) return false;
  if (one.later_open && verdict.kind == VerdictKind::inconclusive) return true;
  if (one.tested.open_pairs == 0) return false;
  if (verdict.reason.kind == ReasonKind::few_pairs) return true;
  return verdict.tested && verdict.kind == VerdictKind::inconclusive &&
         !hopeless(*verdict.estimate, verdict.delta, looks_of(verdict), verdict.alpha);
}

// Whether further pairs with times that count would change nothing.
bool needs_no_times(const Hypothesis& one, const TestedVerdict& verdict) {
  if (may_be_decided(one, verdict)) return false;
  return is_decided(verdict.kind) || verdict.tested || verdict.kind == VerdictKind::not_comparable ||
         verdict.kind == VerdictKind::broken;
}

// A metric whose pairs ended before the last look is INTERIM if the cell gets more of them, else it was stopped.
void say_why_open(const Hypothesis& one, const CellVerdicts& judged, TestedVerdict& verdict) {
  const bool arm_gets_more = judged.undecided.contains(verdict.arm);
  const bool gets_more = arm_gets_more && (!find_metric(verdict.metric).kind->is_cost() ||
                                           judged.times_undecided.contains(verdict.arm));
  if (one.tested.open_pairs == 0 || verdict.kind != VerdictKind::inconclusive) return;
  if (!gets_more && !verdict.tested) return;
  const std::string done = fmt::format("{} of at most {} pairs", verdict.n, verdict.last_look);
  if (gets_more) {
    verdict.kind = VerdictKind::interim;
    verdict.reason = {ReasonKind::planned_runs, done + " have finished, and more may decide"};
    verdict.seeds_needed.reset();
    verdict.cannot_be_resolved = false;
    verdict.decision.reset();
  } else if (hopeless(*verdict.estimate, verdict.delta, looks_of(verdict), verdict.alpha)) {
    verdict.reason = {
        ReasonKind::stopped,
        fmt::format("stopped after {}: the others would decide with a probability below 5 %; {}", done,
                    verdict.reason.text)};
  } else {
    verdict.reason = {ReasonKind::stopped,
                      fmt::format("stopped after {}, because {} need no more pairs", done,
                                  arm_gets_more ? "verdicts on times" : "the published metrics of this arm")};
  }
}

// Adds how long the pairs take that the verdict lacks, one run after the other.
void add_duration(const CellRuns& cell, TestedVerdict& verdict) {
  if (verdict.reason.kind != ReasonKind::few_seeds && verdict.reason.kind != ReasonKind::narrow_margin)
    return;
  const auto arm = std::ranges::find(cell.arms, verdict.arm, &ArmRuns::value);
  double seconds = 0;
  for (const ArmRuns* runs : {&cell.baseline, &*arm}) {
    double sum = 0;
    int finished = 0;
    for (const Observation& run : runs->runs) {
      if (run.final == nullptr) continue;
      sum += run.run->total_seconds;
      ++finished;
    }
    if (finished > 0) seconds += sum / finished;
  }
  seconds *= std::max(0, verdict.seeds_needed.value_or(0) - verdict.n);
  if (seconds > 0) verdict.reason.text += ", about " + duration_text(seconds) + " more";
}

using Families = std::map<std::pair<std::string, std::string>, std::vector<Hypothesis>>;  // by arm and metric

void settle_open_cells(const Families& families, std::vector<CellVerdicts>& cells) {
  for (const auto& [family, cases] : families)
    for (const Hypothesis& one : cases) {
      const TestedVerdict& verdict = cells[one.cell].verdicts[one.place];
      const Metric& metric = find_metric(verdict.metric);
      if (!metric.published) continue;
      if (may_be_decided(one, verdict)) {
        double& largest = cells[one.cell].undecided[verdict.arm];
        largest = std::max(largest, verdict.adjusted_p);
      }
      if (metric.kind->depends_on_others && !needs_no_times(one, verdict))
        cells[one.cell].times_undecided.insert(verdict.arm);
    }
  for (const auto& [family, cases] : families)
    for (const Hypothesis& one : cases) {
      TestedVerdict& verdict = cells[one.cell].verdicts[one.place];
      add_duration(cells[one.cell].cell, verdict);
      say_why_open(one, cells[one.cell], verdict);
    }
}

bool has_open_runs(const ArmRuns& arm, const std::set<std::string>& pairs) {
  return std::ranges::any_of(
      arm.runs, [&](const Observation& run) { return pairs.contains(run.pair) && is_open(run); });
}

bool share_a_run(const std::vector<std::string>& some, const std::vector<std::string>& others) {
  return std::ranges::find_first_of(some, others) != some.end();
}

// Adds the word of an experiment that was planned earlier to an exploratory verdict on the same runs.
void add_first_word(const ReportData& earlier, const Verdict& first, std::vector<CellVerdicts>& cells) {
  for (CellVerdicts& judged : cells)
    for (TestedVerdict& verdict : judged.verdicts)
      for (Caveat& caveat : verdict.caveats)
        if (caveat.mark == exploratory_mark && verdict.metric == first.metric && verdict.kind != first.kind &&
            share_a_run(verdict.baseline_runs, first.baseline_runs) &&
            share_a_run(verdict.arm_runs, first.arm_runs))
          caveat.text += fmt::format("; experiment {} was planned first and says {}", earlier.experiment,
                                     text_of(first.kind));
}

void add_first_words(const ReportData& data, std::vector<CellVerdicts>& cells) {
  for (const ReportData& other : data.earlier_experiments)
    for (const experiments::Compare& compare : other.plan.compare)
      for (const CellVerdicts& judged : judge(other, compare))
        for (const Verdict& first : judged.verdicts) add_first_word(other, first, cells);
}

}  // namespace

const TestedVerdict* CellVerdicts::find(const std::string& arm, const std::string& metric) const {
  for (const TestedVerdict& verdict : verdicts)
    if (verdict.arm == arm && verdict.metric == metric) return &verdict;
  return nullptr;
}

std::vector<CellVerdicts> judge(const ReportData& data, const experiments::Compare& compare) {
  std::vector<CellVerdicts> result;
  for (CellRuns& cell : make_cells(data, compare)) {
    CellVerdicts judged{std::move(cell), {}, {}};
    for (const ArmRuns& arm : judged.cell.arms)
      judged.comparability.push_back(comparability_of(data, compare, judged.cell, arm));
    result.push_back(std::move(judged));
  }
  Families families;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const CellRuns& cell = result[i].cell;
    for (std::size_t j = 0; j < cell.arms.size(); ++j) {
      const ArmRuns& arm = cell.arms[j];
      const FirstPlan plan = first_plan(data, compare, cell, arm);
      std::vector<Caveat> caveats = plan_caveats(data, compare, cell, arm);
      if (plan.abandoned > 0)
        caveats.push_back(
            {exploratory_mark, fmt::format("{} of {} planned pairs were given up later", plan.abandoned,
                                           plan.abandoned + plan.pairs.size())});
      for (const Metric& metric : metrics()) {
        if (!is_defined(cell.baseline, arm, metric)) continue;
        Hypothesis one{i,
                       result[i].verdicts.size(),
                       compare.axis == "strategy",
                       has_parity_check(data, arm),
                       &result[i].comparability[j],
                       tested_cell(data, cell, arm, metric, plan),
                       tested_later(data, cell, arm, metric, plan),
                       has_open_runs(cell.baseline, plan.later) || has_open_runs(arm, plan.later),
                       plan.changes,
                       caveats};
        for (Caveat& caveat : replaced_results(data, compare, cell, arm, metric))
          one.caveats.push_back(std::move(caveat));
        result[i].verdicts.emplace_back();  // in the order of arms and metrics
        families[{arm.value, metric.name}].push_back(std::move(one));
      }
    }
  }
  for (auto& [family, cases] : families) judge_family(cases, result);
  settle_open_cells(families, result);
  add_first_words(data, result);
  return result;
}

}  // namespace trainyard::reports
