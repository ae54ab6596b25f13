#include "reports/verdict.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/differences.h"
#include "reports/number_text.h"
#include "reports/planning.h"

namespace trainyard::reports {

namespace {

constexpr int fewest_pairs = 3;

std::string plural(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void decide_diverged(Verdict& verdict, const Differences& differences, const Cell& cell) {
  verdict.diverged = true;
  if (differences.arm_diverged && !differences.baseline_diverged) {
    verdict.word = Word::deteriorates;
    verdict.reason = "diverged: the loss of " + verdict.arm + " is no number where that of " +
                     cell.baseline.value + " is one";
  } else if (differences.baseline_diverged && !differences.arm_diverged) {
    verdict.word = Word::improves;
    verdict.reason = "diverged: the loss of " + cell.baseline.value + " is no number where that of " +
                     verdict.arm + " is one";
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
  if (verdict.n < 2) return;
  const auto not_positive = [](double value) { return value <= 0; };
  if (verdict.scale == Scale::log_ratio && (std::ranges::any_of(differences.baseline, not_positive) ||
                                            std::ranges::any_of(differences.arm, not_positive))) {
    verdict.reason = "a value of 0 has no ratio";
    verdict.n = 0;
    return;
  }
  verdict.estimate = estimate_of(differences, {verdict.scale, verdict.margin}, paired);
}

Verdict first_look(const Cell& cell, const Arm& arm, const Metric& metric, const Differences& differences,
                   const experiments::Compare& compare) {
  Verdict verdict;
  verdict.metric = metric.name;
  verdict.arm = arm.value;
  verdict.dropped = differences.dropped;
  const Measure measure = measure_for(differences, metric, compare.margins);
  verdict.scale = measure.scale;
  verdict.margin = measure.margin;
  estimate(verdict, differences, !compare.pair.empty());
  if (!differences.complete) {
    verdict.word = Word::interim;
    verdict.reason = plural(differences.open_runs, "planned run") + " not finished yet";
  } else if (differences.diverged()) {
    decide_diverged(verdict, differences, cell);
  } else if (verdict.n >= fewest_pairs && verdict.estimate) {
    verdict.tested = true;
    verdict.constant = is_constant(*verdict.estimate, verdict.margin);
    verdict.p = three_sided_test(*verdict.estimate, verdict.margin);
  }
  return verdict;
}

Word smallest_word(const ThreeSided& p) {
  if (p.equivalent <= 2 * std::min(p.better, p.worse)) return Word::no_change;
  return p.better <= p.worse ? Word::improves : Word::deteriorates;
}

// Level that Holm tests the cell at: α over the number of hypotheses that are not smaller.
void plan_seeds(Verdict& verdict, const std::vector<double>& family, double alpha) {
  const auto smaller = std::ranges::count_if(family, [&](double p) { return p < verdict.p.cell; });
  const double level = alpha / static_cast<double>(family.size() - static_cast<std::size_t>(smaller));
  verdict.seeds_needed =
      seeds_needed(verdict.estimate->mean, verdict.estimate->spread, verdict.margin, level);
  verdict.cannot_be_resolved = !verdict.seeds_needed;
  const std::string plan =
      verdict.seeds_needed ? "about " + std::to_string(*verdict.seeds_needed) + " seeds (a planning value)"
                           : "> 100 seeds: cannot be resolved at this margin";
  verdict.reason = "the interval fits neither verdict; it would take " + plan;
}

// One metric and one arm over all cells. Interim cells count with p = 1: what is decided beside them stays
// decided when they are finished.
void judge_family(const std::vector<Verdict*>& family, double alpha) {
  std::vector<double> p;
  p.reserve(family.size());
  for (const Verdict* verdict : family) p.push_back(verdict->tested ? verdict->p.cell : 1);
  const std::vector<double> adjusted = holm(p);
  for (std::size_t i = 0; i < family.size(); ++i) {
    Verdict& verdict = *family[i];
    if (!verdict.tested) continue;
    verdict.adjusted_p = adjusted[i];
    if (adjusted[i] <= alpha) {
      verdict.word = smallest_word(verdict.p);
      if (verdict.constant)
        verdict.reason = "all differences are equal: compared with the margin, not tested";
    } else if (verdict.constant) {
      verdict.reason = "all differences are equal to the margin";
    } else {
      plan_seeds(verdict, p, alpha);
    }
  }
}

std::vector<Verdict*> family_of(std::vector<CellVerdicts>& cells, const std::string& arm,
                                const std::string& metric) {
  std::vector<Verdict*> family;
  for (CellVerdicts& cell : cells) {
    for (Verdict& verdict : cell.verdicts) {
      const bool counts = verdict.tested || verdict.word == Word::interim;
      if (counts && verdict.arm == arm && verdict.metric == metric) family.push_back(&verdict);
    }
  }
  return family;
}

double shown(Scale scale, double difference) {
  if (scale == Scale::log_ratio) return 100 * std::expm1(-difference);
  return scale == Scale::absolute ? -difference : difference;
}

Interval shown(Scale scale, const Interval& differences) {
  const double first = shown(scale, differences.low);
  const double second = shown(scale, differences.high);
  return {std::min(first, second), std::max(first, second)};
}

}  // namespace

std::string text_of(Word word) {
  switch (word) {
    case Word::improves:
      return "IMPROVES";
    case Word::no_change:
      return "NO CHANGE";
    case Word::deteriorates:
      return "DETERIORATES";
    case Word::inconclusive:
      return "INCONCLUSIVE";
    case Word::interim:
      return "INTERIM";
  }
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
  std::set<std::string> arms;
  for (Cell& cell : make_cells(data, compare)) {
    CellVerdicts judged{std::move(cell), {}};
    for (const Arm& arm : judged.cell.arms) {
      arms.insert(arm.value);
      for (const Metric& metric : metrics()) {
        const Differences differences = collect_differences(judged.cell, arm, metric, compare);
        if (!differences.defined) continue;
        judged.verdicts.push_back(first_look(judged.cell, arm, metric, differences, compare));
      }
    }
    result.push_back(std::move(judged));
  }
  for (const std::string& arm : arms) {
    for (const Metric& metric : metrics()) judge_family(family_of(result, arm, metric.name), compare.alpha);
  }
  return result;
}

Change change_of(const Verdict& verdict, double level) {
  return {shown(verdict.scale, verdict.estimate->mean),
          shown(verdict.scale, confidence_interval(*verdict.estimate, level))};
}

Interval margin_as_change(const Verdict& verdict) {
  return shown(verdict.scale, Interval{-verdict.margin, verdict.margin});
}

}  // namespace trainyard::reports
