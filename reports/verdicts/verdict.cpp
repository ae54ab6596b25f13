#include "reports/verdicts/verdict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/statistics/power_analysis.h"
#include "reports/verdicts/differences.h"
#include "reports/verdicts/interim_analyses.h"
#include "reports/verdicts/plan_caveats.h"

namespace trainyard::reports {

namespace {

void plan_seeds(Verdict& verdict, double holm_level) {
  verdict.seeds_needed =
      seeds_needed(verdict.estimate->mean, verdict.estimate->spread, verdict.margin, holm_level);
  verdict.cannot_be_resolved = !verdict.seeds_needed;
  verdict.reason = verdict.seeds_needed
                       ? Reason{ReasonKind::few_seeds,
                                fmt::format("too few seeds: plan about {} in total", *verdict.seeds_needed)}
                       : Reason{ReasonKind::narrow_margin,
                                "more seeds do not help: even 100 would not decide at this margin"};
}

// One cell, arm and metric, with its result at each look.
struct Case {
  std::size_t cell = 0;
  const Comparability* comparability = nullptr;
  std::vector<Verdict> looks;
  std::vector<std::string> changes;  // of the rules since the first plan
  std::vector<Caveat> caveats;
};

bool decided_outside(const Verdict& verdict) {
  return !verdict.tested &&
         (verdict.word == VerdictKind::improves || verdict.word == VerdictKind::deteriorates);
}

std::vector<LookTest> tests_of(const Case& one) {
  std::vector<LookTest> tests;
  for (const Verdict& look : one.looks)
    tests.push_back({look.tested ? std::optional(look.p) : std::nullopt, look.level});
  return tests;
}

// The look that gives the verdict: the first that decided, by its test or by divergence; else the last look.
std::size_t standing_look(const Case& one, const Decision& decision) {
  for (std::size_t look = 0; look < one.looks.size(); ++look) {
    const bool by_test = decision.word != VerdictKind::inconclusive && decision.look == look;
    if (by_test || decided_outside(one.looks[look])) return look;
  }
  return one.looks.size() - 1;
}

void take_decision(Verdict& verdict, const Decision& decision) {
  verdict.adjusted_p = decision.adjusted_p;
  verdict.word = decision.word;
  if (verdict.constant) {
    verdict.reason = {
        ReasonKind::constant,
        verdict.word == VerdictKind::inconclusive
            ? "all differences are equal to the margin"
            : "the difference is the same for every seed, so it is compared with the margin without a test"};
  } else if (verdict.word == VerdictKind::inconclusive) {
    plan_seeds(verdict, decision.holm_level);
  }
}

std::string look_name(const Verdict& look) {
  return fmt::format("look {} (n = {})", look.look, look.n);
}

// "decided at the first look, n = 3"; only if there are several looks.
std::string decided_at(const Verdict& standing) {
  static constexpr std::array ordinals{"first", "second", "third", "fourth", "fifth", "sixth"};
  const auto index = static_cast<std::size_t>(standing.look - 1);
  const std::string look = index < ordinals.size() ? fmt::format("the {} look", ordinals[index])
                                                   : fmt::format("look {}", standing.look);
  return fmt::format("{}{}, n = {}", decided_at_look, look, standing.n);
}

void note_other_looks(Verdict& standing, const Case& one, const Decision& decision) {
  for (const Verdict& look : one.looks) {
    const auto index = static_cast<std::size_t>(look.look - 1);
    const VerdictKind word =
        decided_outside(look) ? look.word : decision.by_look[index].value_or(VerdictKind::interim);
    if (look.look < standing.look && look.word != VerdictKind::interim)
      standing.notes.push_back(look_name(look) + " gave no decision");
    if (look.look <= standing.look) continue;
    if (look.word == VerdictKind::interim) {
      standing.notes.push_back(fmt::format("{}: {}", look_name(look), look.reason.text));
    } else if (word != standing.word && word != VerdictKind::interim && word != VerdictKind::inconclusive) {
      standing.notes.push_back(fmt::format("{}: {}", look_name(look), text_of(word)));
    }
  }
}

// Why the arms must not be compared, whatever their values are; empty if they may be.
std::string refusal(const Case& one) {
  const Comparability& found = *one.comparability;
  std::string text = joined(found.refused, {}, "; ");
  if (!is_cost(find_metric(one.looks.front().metric).kind) || found.times_refused.empty()) return text;
  return text + (text.empty() ? "" : "; ") + joined(found.times_refused, {}, "; ");
}

bool in_family(const Case& one) {
  if (!one.comparability->broken.empty() || !refusal(one).empty()) return false;
  return std::ranges::any_of(
      one.looks, [](const Verdict& look) { return look.tested || look.word == VerdictKind::interim; });
}

// Replaces the verdict by `word`. Effect and intervals stay, as they may help to find the reason.
void refuse(Verdict& verdict, VerdictKind word, const Reason& why) {
  verdict.word = word;
  verdict.reason = why;
  verdict.tested = false;
}

void apply(const Case& one, Verdict& verdict) {
  const Comparability& found = *one.comparability;
  verdict.verified = found.verified();
  if (!is_cost(find_metric(verdict.metric).kind))
    verdict.caveats.insert(verdict.caveats.end(), found.caveats.begin(), found.caveats.end());
  for (const std::string& declared : found.declared) verdict.notes.push_back("declared: " + declared);
  if (!found.broken.empty()) {
    refuse(verdict, VerdictKind::broken, {ReasonKind::broken, found.broken});
  } else if (const std::string why = refusal(one); !why.empty()) {
    refuse(verdict, VerdictKind::not_comparable, {ReasonKind::not_comparable, why});
  }
}

Verdict verdict_of(const Case& one, const Decision& decision) {
  const std::size_t standing = standing_look(one, decision);
  Verdict verdict = one.looks[standing];
  if (verdict.tested && in_family(one)) take_decision(verdict, decision);
  if (verdict.looks > 1 && is_decided(verdict.word)) verdict.notes.push_back(decided_at(verdict));
  note_other_looks(verdict, one, decision);
  verdict.notes.insert(verdict.notes.end(), one.changes.begin(), one.changes.end());
  verdict.caveats = one.caveats;
  apply(one, verdict);
  return verdict;
}

// Family: one metric and one arm over all cells, without the cells that can never be tested.
void judge_family(const std::vector<Case>& cases, std::vector<CellVerdicts>& cells) {
  std::vector<std::vector<LookTest>> tests;
  for (const Case& one : cases) {
    if (in_family(one)) tests.push_back(tests_of(one));
  }
  const std::vector<Decision> decisions = decide_family(tests);
  std::size_t next = 0;
  for (const Case& one : cases) {
    Decision none;
    none.by_look.resize(one.looks.size());
    cells[one.cell].verdicts.push_back(verdict_of(one, in_family(one) ? decisions[next++] : none));
  }
}

// Sorts by arm, then metric.
void in_order(CellVerdicts& judged) {
  const auto place = [&](const Verdict& verdict) {
    const auto arm = std::ranges::find(judged.cell.arms, verdict.arm, &Arm::value);
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
    for (Verdict& verdict : judged.verdicts)
      for (Caveat& caveat : verdict.caveats)
        if (caveat.mark == exploratory_mark && verdict.metric == first.metric && verdict.word != first.word &&
            share_a_run(verdict.baseline_runs, first.baseline_runs) &&
            share_a_run(verdict.arm_runs, first.arm_runs))
          caveat.text += fmt::format("; experiment {} was planned first and says {}", earlier.experiment,
                                     text_of(first.word));
}

void add_first_words(const ReportData& data, std::vector<CellVerdicts>& cells) {
  for (const ReportData& other : data.earlier_experiments)
    for (const experiments::Compare& compare : other.plan.compare)
      for (const CellVerdicts& judged : judge(other, compare))
        for (const Verdict& first : judged.verdicts) add_first_word(other, first, cells);
}

Interval shown(Scale scale, const Interval& differences) {
  const double first = as_change(scale, differences.low);
  const double second = as_change(scale, differences.high);
  return {std::min(first, second), std::max(first, second)};
}

}  // namespace

std::string Verdict::hypothesis() const {
  if (!p_value()) return "";
  const VerdictKind smallest = smallest_word(p);
  if (smallest == VerdictKind::no_change) return "inside the margin";
  return smallest == VerdictKind::improves ? "better than the margin" : "worse than the margin";
}

std::string CellVerdicts::not_verified(const std::string& arm) const {
  for (std::size_t i = 0; i < cell.arms.size(); ++i)
    if (cell.arms[i].value == arm && !comparability[i].verified())
      return "NOT VERIFIED: the records do not state " + joined(comparability[i].not_stated, {}, "; ");
  return "";
}

const Verdict* CellVerdicts::find(const std::string& arm, const std::string& metric) const {
  for (const Verdict& verdict : verdicts) {
    if (verdict.arm == arm && verdict.metric == metric) return &verdict;
  }
  return nullptr;
}

std::vector<CellVerdicts> judge(const ReportData& data, const experiments::Compare& compare) {
  std::vector<CellVerdicts> result;
  for (Cell& cell : make_cells(data, compare)) {
    CellVerdicts judged{std::move(cell), {}, {}};
    for (const Arm& arm : judged.cell.arms)
      judged.comparability.push_back(comparability_of(data, compare, judged.cell, arm));
    result.push_back(std::move(judged));
  }
  std::map<std::pair<std::string, std::string>, std::vector<Case>> families;  // by arm and metric
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Cell& cell = result[i].cell;
    for (std::size_t j = 0; j < cell.arms.size(); ++j) {
      const Arm& arm = cell.arms[j];
      const InterimPlan plan = plan_interim_analyses(data, compare, cell, arm);
      const std::vector<Caveat> caveats = plan_caveats(data, compare, cell, arm);
      for (const Metric& metric : metrics()) {
        if (!is_defined(cell.baseline, arm, metric)) continue;
        Case one{i, &result[i].comparability[j], at_looks(cell, arm, metric, plan), plan.changes, caveats};
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

Change change_of(const Verdict& verdict, double level) {
  return {as_change(verdict.scale, verdict.estimate->mean),
          shown(verdict.scale, confidence_interval(*verdict.estimate, level))};
}

Interval margin_as_change(const Verdict& verdict) {
  return shown(verdict.scale, Interval{-verdict.margin, verdict.margin});
}

}  // namespace trainyard::reports
