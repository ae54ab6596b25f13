#include "reports/verdicts/plan_caveats.h"

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
#include "reports/statistics/statistics.h"
#include "reports/verdicts/first_plan.h"

namespace trainyard::reports {

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

bool was_removed(const ReportData& data, const Observation& observation) {
  return observation.final == nullptr && data.earlier.contains(observation.run->run_key);
}

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
