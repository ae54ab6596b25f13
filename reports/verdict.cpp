#include "reports/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/differences.h"
#include "reports/look_plan.h"
#include "reports/number_text.h"
#include "reports/planning.h"

namespace trainyard::reports {

namespace {

std::string plural(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

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

// Effect and spread, where there are numbers enough; a reason where there are not.
void estimate(Verdict& verdict, const Differences& differences, bool paired) {
  const std::size_t a = differences.baseline.size();
  const std::size_t b = differences.arm.size();
  verdict.n = static_cast<int>(std::min(a, b));
  if (verdict.n < fewest_pairs) {
    verdict.reason = differences.uncounted > 0 ? "times do not count: ranks shared devices, or runs the host"
                     : paired ? "only " + plural(verdict.n, "pair") + ", at least 3 are needed"
                              : "only " + plural(verdict.n, "run") + " in an arm, at least 3 are needed";
  }
  if (verdict.n < 1) return;
  const auto not_positive = [](double value) { return value <= 0; };
  if (verdict.scale == Scale::log_ratio && (std::ranges::any_of(differences.baseline, not_positive) ||
                                            std::ranges::any_of(differences.arm, not_positive))) {
    verdict.reason = "a value of 0 has no ratio";
    verdict.n = 0;
    return;
  }
  const Measure measure{verdict.scale, verdict.margin};
  if (verdict.n == 1) {
    verdict.difference = mean_difference(differences, measure);
  } else {
    verdict.estimate = estimate_of(differences, measure, paired);
  }
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
  estimate(verdict, differences, !rules.pair.empty());
  if (differences.open_runs > 0) {
    verdict.word = Word::interim;
    verdict.reason = plural(differences.open_runs, "planned run") + " not finished yet";
  } else if (differences.diverged()) {
    decide_diverged(verdict, differences, baseline);
  } else if (verdict.n >= fewest_pairs && verdict.estimate) {
    verdict.tested = true;
    verdict.constant = is_constant(*verdict.estimate, verdict.margin);
    verdict.p = three_sided_test(*verdict.estimate, verdict.margin);
  }
  if (differences.warm_up_counts)
    verdict.notes.emplace_back("runs of fewer than 3 epochs: the warm-up epoch counts");
  return verdict;
}

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
    const std::vector<std::string> alone = without_partner(cell.baseline, arm, plan.rules);
    verdict.dropped.insert(verdict.dropped.end(), alone.begin(), alone.end());
    looks.push_back(std::move(verdict));
  }
  return looks;
}

void plan_seeds(Verdict& verdict, double holm_level) {
  verdict.seeds_needed =
      seeds_needed(verdict.estimate->mean, verdict.estimate->spread, verdict.margin, holm_level);
  verdict.cannot_be_resolved = !verdict.seeds_needed;
  const std::string plan =
      verdict.seeds_needed ? "about " + std::to_string(*verdict.seeds_needed) + " seeds (a planning value)"
                           : "> 100 seeds: cannot be resolved at this margin";
  verdict.reason = "the interval fits neither verdict; it would take " + plan;
}

// One cell, arm and metric: what it is at each of its looks.
struct Case {
  std::size_t cell = 0;
  std::vector<Verdict> looks;
  std::vector<std::string> changes;  // of the rules since they were first planned
};

bool decided_outside(const Verdict& verdict) {
  return !verdict.tested && (verdict.word == Word::improves || verdict.word == Word::deteriorates);
}

std::vector<LookTest> tests_of(const Case& one) {
  std::vector<LookTest> tests;
  for (const Verdict& look : one.looks)
    tests.push_back({look.tested ? std::optional(look.p) : std::nullopt, look.level});
  return tests;
}

// The look whose word stands: the first that decided, by its test or by a divergence; else the last one.
std::size_t standing_look(const Case& one, const Decision& decision) {
  for (std::size_t look = 0; look < one.looks.size(); ++look) {
    const bool by_test = decision.word != Word::inconclusive && decision.look == look;
    if (by_test || decided_outside(one.looks[look])) return look;
  }
  return one.looks.size() - 1;
}

void take_decision(Verdict& verdict, const Decision& decision) {
  verdict.adjusted_p = decision.adjusted_p;
  verdict.word = decision.word;
  if (verdict.constant) {
    verdict.reason = verdict.word == Word::inconclusive
                         ? "all differences are equal to the margin"
                         : "all differences are equal: compared with the margin, not tested";
  } else if (verdict.word == Word::inconclusive) {
    plan_seeds(verdict, decision.holm_level);
  }
}

std::string look_name(const Verdict& look) {
  return "look " + std::to_string(look.look) + " (n = " + std::to_string(look.n) + ")";
}

void note_other_looks(Verdict& standing, const Case& one, const Decision& decision) {
  for (const Verdict& look : one.looks) {
    const auto index = static_cast<std::size_t>(look.look - 1);
    const Word word = decided_outside(look) ? look.word : decision.by_look[index].value_or(Word::interim);
    if (look.look < standing.look && look.word != Word::interim)
      standing.notes.push_back(look_name(look) + " decided nothing");
    if (look.look <= standing.look) continue;
    if (look.word == Word::interim) {
      standing.notes.push_back(look_name(look) + ": " + look.reason);
    } else if (word != standing.word && word != Word::interim && word != Word::inconclusive) {
      standing.notes.push_back(look_name(look) + " says " + text_of(word));
    }
  }
}

Verdict verdict_of(const Case& one, const Decision& decision) {
  const std::size_t standing = standing_look(one, decision);
  Verdict verdict = one.looks[standing];
  if (verdict.tested) take_decision(verdict, decision);
  note_other_looks(verdict, one, decision);
  verdict.notes.insert(verdict.notes.end(), one.changes.begin(), one.changes.end());
  return verdict;
}

// One metric and one arm over all cells; a cell that will never be tested is not of the family.
void judge_family(const std::vector<Case>& cases, std::vector<CellVerdicts>& cells) {
  std::vector<std::vector<LookTest>> tests;
  for (const Case& one : cases) {
    const bool counts = std::ranges::any_of(
        one.looks, [](const Verdict& look) { return look.tested || look.word == Word::interim; });
    if (counts) tests.push_back(tests_of(one));
  }
  const std::vector<Decision> decisions = decide_family(tests);
  std::size_t next = 0;
  for (const Case& one : cases) {
    const bool counts = std::ranges::any_of(
        one.looks, [](const Verdict& look) { return look.tested || look.word == Word::interim; });
    Decision none;
    none.by_look.resize(one.looks.size());
    cells[one.cell].verdicts.push_back(verdict_of(one, counts ? decisions[next++] : none));
  }
}

// By arm, then metric, whatever order the families came in.
void in_order(CellVerdicts& judged) {
  const auto place = [&](const Verdict& verdict) {
    const auto arm = std::ranges::find(judged.cell.arms, verdict.arm, &Arm::value);
    const auto metric = std::ranges::find(metrics(), verdict.metric, &Metric::name);
    return std::pair(arm - judged.cell.arms.begin(), metric - metrics().begin());
  };
  std::ranges::sort(judged.verdicts, {}, place);
}

Interval shown(Scale scale, const Interval& differences) {
  const double first = as_change(scale, differences.low);
  const double second = as_change(scale, differences.high);
  return {std::min(first, second), std::max(first, second)};
}

}  // namespace

const Verdict* CellVerdicts::find(const std::string& arm, const std::string& metric) const {
  for (const Verdict& verdict : verdicts) {
    if (verdict.arm == arm && verdict.metric == metric) return &verdict;
  }
  return nullptr;
}

std::vector<CellVerdicts> judge(const ReportData& data, const experiments::Compare& compare) {
  std::vector<CellVerdicts> result;
  std::map<std::pair<std::string, std::string>, std::vector<Case>> families;  // by arm and metric
  for (Cell& cell : make_cells(data, compare)) {
    for (const Arm& arm : cell.arms) {
      const LookPlan plan = plan_looks(data, compare, cell, arm);
      for (const Metric& metric : metrics()) {
        if (!is_defined(cell.baseline, arm, metric)) continue;
        families[{arm.value, metric.name}].push_back(
            {result.size(), at_looks(cell, arm, metric, plan), plan.changes});
      }
    }
    result.push_back({std::move(cell), {}});
  }
  for (const auto& [family, cases] : families) judge_family(cases, result);
  for (CellVerdicts& judged : result) in_order(judged);
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
