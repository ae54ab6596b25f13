#include "reports/verdicts/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/statistics/power_analysis.h"
#include "reports/verdicts/differences.h"
#include "reports/verdicts/interim_analyses.h"
#include "reports/verdicts/plan_caveats.h"

namespace trainyard::reports {

namespace {

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

// One cell, arm and metric, with its result at each look.
struct Hypothesis {
  std::size_t cell = 0;
  bool of_strategies = false;
  const Comparability* comparability = nullptr;
  std::vector<TestedVerdict> looks;
  std::vector<std::string> changes;  // of the rules since the first plan
  std::vector<Caveat> caveats;
};

bool decided_outside(const TestedVerdict& verdict) {
  return !verdict.tested &&
         (verdict.kind == VerdictKind::improves || verdict.kind == VerdictKind::deteriorates);
}

std::vector<LookTest> tests_of(const Hypothesis& one) {
  std::vector<LookTest> tests;
  for (const TestedVerdict& look : one.looks)
    tests.push_back({look.tested ? std::optional(look.three_sided) : std::nullopt, look.look_level});
  return tests;
}

// The look that gives the verdict: the first that decided, by its test or by divergence; else the last look.
std::size_t deciding_analysis(const Hypothesis& one, const Decision& decision) {
  for (std::size_t look = 0; look < one.looks.size(); ++look) {
    const bool by_test = decision.kind != VerdictKind::inconclusive && decision.look == look;
    if (by_test || decided_outside(one.looks[look])) return look;
  }
  return one.looks.size() - 1;
}

void take_decision(TestedVerdict& verdict, const Decision& decision) {
  verdict.adjusted_p = decision.adjusted_p;
  verdict.kind = decision.kind;
  if (verdict.constant) {
    verdict.reason = {
        ReasonKind::constant,
        verdict.kind == VerdictKind::inconclusive
            ? "all differences are equal to the margin"
            : "the difference is the same for every seed, so it is compared with the margin without a test"};
  } else if (verdict.kind == VerdictKind::inconclusive) {
    plan_seeds(verdict, decision.holm_level);
  }
}

std::string look_name(const TestedVerdict& look) {
  return fmt::format("look {} (n = {})", look.look, look.n);
}

// "decided at the first look, n = 3"; only if there are several looks.
std::string decided_at(const TestedVerdict& standing) {
  static constexpr std::array ordinals{"first", "second", "third", "fourth", "fifth", "sixth"};
  const auto index = static_cast<std::size_t>(standing.look - 1);
  const std::string look = index < ordinals.size() ? fmt::format("the {} look", ordinals[index])
                                                   : fmt::format("look {}", standing.look);
  return fmt::format("{}{}, n = {}", decided_at_look, look, standing.n);
}

void note_other_looks(TestedVerdict& standing, const Hypothesis& one, const Decision& decision) {
  for (const TestedVerdict& look : one.looks) {
    const auto index = static_cast<std::size_t>(look.look - 1);
    const VerdictKind kind =
        decided_outside(look) ? look.kind : decision.by_look[index].value_or(VerdictKind::interim);
    if (look.look < standing.look && look.kind != VerdictKind::interim)
      standing.notes.push_back(look_name(look) + " gave no decision");
    if (look.look <= standing.look) continue;
    if (look.kind == VerdictKind::interim) {
      standing.notes.push_back(fmt::format("{}: {}", look_name(look), look.reason.text));
    } else if (kind != standing.kind && kind != VerdictKind::interim && kind != VerdictKind::inconclusive) {
      standing.notes.push_back(fmt::format("{}: {}", look_name(look), text_of(kind)));
    }
  }
}

// Why the arms must not be compared, whatever their values are; empty if they may be.
std::string refusal(const Hypothesis& one) {
  const Comparability& found = *one.comparability;
  std::string text = joined(found.refused, {}, "; ");
  if (!find_metric(one.looks.front().metric).kind->is_cost() || found.times_refused.empty()) return text;
  return text + (text.empty() ? "" : "; ") + joined(found.times_refused, {}, "; ");
}

bool in_family(const Hypothesis& one) {
  if (!one.comparability->broken.empty() || !refusal(one).empty()) return false;
  return std::ranges::any_of(
      one.looks, [](const TestedVerdict& look) { return look.tested || look.kind == VerdictKind::interim; });
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
  if (!find_metric(verdict.metric).kind->is_cost())
    verdict.caveats.insert(verdict.caveats.end(), found.caveats.begin(), found.caveats.end());
  for (const std::string& declared : found.declared) verdict.notes.push_back("declared: " + declared);
  if (!found.broken.empty()) {
    refuse(verdict, VerdictKind::broken, {ReasonKind::broken, found.broken});
  } else if (const std::string why = refusal(one); !why.empty()) {
    refuse(verdict, VerdictKind::not_comparable, {ReasonKind::not_comparable, why});
  }
}

Interval shown(Scale scale, const Interval& differences) {
  const double first = as_change(scale, differences.low);
  const double second = as_change(scale, differences.high);
  return {std::min(first, second), std::max(first, second)};
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
  return DecisionInterval{confidence,
                          shown(verdict.scale, confidence_interval(*verdict.estimate, confidence))};
}

std::string hypothesis_text(const ThreeSided& p) {
  const VerdictKind smallest = smallest_hypothesis(p);
  if (smallest == VerdictKind::no_change) return "inside the margin";
  return smallest == VerdictKind::improves ? "better than the margin" : "worse than the margin";
}

// Sets the numbers that publishing reads. Constant differences have no p-value, but count as members of their
// family.
void set_numbers(TestedVerdict& verdict) {
  if (verdict.difference) verdict.effect = as_change(verdict.scale, *verdict.difference);
  if (verdict.estimate) {
    verdict.effect = as_change(verdict.scale, verdict.estimate->mean);
    verdict.ci95 = shown(verdict.scale, confidence_interval(*verdict.estimate, 0.95));
    verdict.ci90 = shown(verdict.scale, confidence_interval(*verdict.estimate, 0.90));
  }
  if (verdict.delta > 0) verdict.margin = shown(verdict.scale, {-verdict.delta, verdict.delta});
  if (verdict.tested) verdict.level = verdict.look_level;
  if (!verdict.tested || verdict.constant) return;
  verdict.p = verdict.adjusted_p;
  verdict.hypothesis = hypothesis_text(verdict.three_sided);
}

// The estimate of all seeds, if more were added after the decision.
std::optional<LaterEstimate> later_estimate(const Hypothesis& one, const TestedVerdict& standing) {
  const TestedVerdict& last = one.looks.back();
  if (!is_decided(standing.kind) || last.look == standing.look) return std::nullopt;
  if (!last.estimate || last.scale != standing.scale) return std::nullopt;
  return LaterEstimate{last.n, as_change(last.scale, last.estimate->mean),
                       shown(last.scale, confidence_interval(*last.estimate, 0.95))};
}

bool differs_by_rounding(const Hypothesis& one, const TestedVerdict& verdict) {
  const Comparability& found = *one.comparability;
  if (!one.of_strategies || !found.verified() || !found.declared.empty()) return false;
  if (verdict.kind != VerdictKind::no_change || !verdict.ci95 || !verdict.margin) return false;
  return std::max(std::abs(verdict.ci95->low), std::abs(verdict.ci95->high)) < verdict.margin->high / 1000;
}

TestedVerdict verdict_of(const Hypothesis& one, const Decision& decision) {
  const std::size_t deciding = deciding_analysis(one, decision);
  TestedVerdict verdict = one.looks[deciding];
  if (verdict.tested && in_family(one)) take_decision(verdict, decision);
  if (verdict.looks > 1 && is_decided(verdict.kind)) verdict.notes.push_back(decided_at(verdict));
  note_other_looks(verdict, one, decision);
  verdict.notes.insert(verdict.notes.end(), one.changes.begin(), one.changes.end());
  verdict.caveats = one.caveats;
  apply(one, verdict);
  set_numbers(verdict);
  verdict.decision = decision_interval(verdict, decision.holm_level);
  verdict.later = later_estimate(one, verdict);
  verdict.identical = differs_by_rounding(one, verdict);
  return verdict;
}

// Family: one metric and one arm over all cells, without the cells that can never be tested.
void judge_family(const std::vector<Hypothesis>& cases, std::vector<CellVerdicts>& cells) {
  std::vector<std::vector<LookTest>> tests;
  for (const Hypothesis& one : cases) {
    if (in_family(one)) tests.push_back(tests_of(one));
  }
  const std::vector<Decision> decisions = decide_family(tests);
  std::size_t next = 0;
  for (const Hypothesis& one : cases) {
    Decision none;
    none.by_look.resize(one.looks.size());
    cells[one.cell].verdicts.push_back(verdict_of(one, in_family(one) ? decisions[next++] : none));
  }
}

// Sorts by arm, then metric.
void in_order(CellVerdicts& judged) {
  const auto place = [&](const Verdict& verdict) {
    const auto arm = std::ranges::find(judged.cell.arms, verdict.arm, &ArmRuns::value);
    const auto metric = std::ranges::find(metrics(), verdict.metric, &Metric::name);
    return std::pair(arm - judged.cell.arms.begin(), metric - metrics().begin());
  };
  std::ranges::sort(judged.verdicts, {}, place);
}

bool share_a_run(const std::vector<std::string>& some, const std::vector<std::string>& others) {
  return std::ranges::any_of(
      some, [&](const std::string& key) { return std::ranges::find(others, key) != others.end(); });
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
  for (const TestedVerdict& verdict : verdicts) {
    if (verdict.arm == arm && verdict.metric == metric) return &verdict;
  }
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
  std::map<std::pair<std::string, std::string>, std::vector<Hypothesis>> families;  // by arm and metric
  for (std::size_t i = 0; i < result.size(); ++i) {
    const CellRuns& cell = result[i].cell;
    for (std::size_t j = 0; j < cell.arms.size(); ++j) {
      const ArmRuns& arm = cell.arms[j];
      const InterimPlan plan = plan_interim_analyses(data, compare, cell, arm);
      const std::vector<Caveat> caveats = plan_caveats(data, compare, cell, arm);
      for (const Metric& metric : metrics()) {
        if (!is_defined(cell.baseline, arm, metric)) continue;
        Hypothesis one{i,
                       compare.axis == "strategy",
                       &result[i].comparability[j],
                       at_looks(cell, arm, metric, plan),
                       plan.changes,
                       caveats};
        for (Caveat& caveat : replaced_results(data, compare, cell, arm, metric))
          one.caveats.push_back(std::move(caveat));
        families[{arm.value, metric.name}].push_back(std::move(one));
      }
    }
  }
  for (const auto& [family, cases] : families) judge_family(cases, result);
  for (CellVerdicts& judged : result) in_order(judged);
  add_first_words(data, result);
  return result;
}

double as_change(Scale scale, double difference) {
  if (scale == Scale::log_ratio) return 100 * std::expm1(-difference);
  return scale == Scale::absolute ? -difference : difference;
}

}  // namespace trainyard::reports
