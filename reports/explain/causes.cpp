#include "reports/explain/causes.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include <fmt/format.h>

#include "base/named_row.h"
#include "experiments/protocol/time_parts.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

struct PairOfRuns {
  const Observation* baseline = nullptr;
  const Observation* arm = nullptr;
};

std::vector<PairOfRuns> pairs_of(const experiments::Compare& compare, const ArmRuns& baseline,
                                 const ArmRuns& arm) {
  std::vector<PairOfRuns> pairs;
  for (std::size_t i = 0; i < arm.runs.size(); ++i)
    if (const Observation* partner = compared_with(baseline, arm, i, !compare.pair.empty()))
      pairs.push_back({partner, &arm.runs[i]});
  return pairs;
}

// A rule holds for the arm if it holds in most pairs. The evidence is that of the first one.
void apply(std::span<const Rule> rules, const std::vector<ExplainedPair>& pairs, std::vector<Cause>& causes) {
  for (const Rule& rule : rules) {
    std::optional<Finding> first;
    std::size_t holds = 0;
    for (const ExplainedPair& pair : pairs)
      if (auto found = rule.find(pair)) {
        ++holds;
        if (!first) first = std::move(found);
      }
    if (2 * holds <= pairs.size()) continue;
    if (holds < pairs.size()) first->evidence += fmt::format(" (in {} of {} pairs)", holds, pairs.size());
    causes.push_back({rule.name, rule.of_times, first->evidence, first->advice});
    if (rule.is_last) return;
  }
}

using Seconds = std::map<std::string, double>;  // by part of an epoch

// The parts of a run. Null if they are not known or do not count.
const Seconds* parts_of(const SecondsByRun& by_run, const Observation& run) {
  const auto* parts = value_or_null(by_run, run.run->run_key);
  return parts == nullptr || run.final == nullptr || !run.final->times_count || (*parts)->empty() ? nullptr
                                                                                                  : *parts;
}

std::vector<PartChange> part_changes(const SecondsByRun& by_run, const experiments::Compare& compare,
                                     const ArmRuns& baseline, const ArmRuns& arm) {
  std::map<std::string, std::vector<double>> changes;
  for (const PairOfRuns& pair : pairs_of(compare, baseline, arm)) {
    const Seconds* first = parts_of(by_run, *pair.baseline);
    const Seconds* second = parts_of(by_run, *pair.arm);
    if (first == nullptr || second == nullptr) continue;
    const auto seconds = [](const Seconds& parts, const std::string& name) {
      const double* found = value_or_null(parts, name);
      return found == nullptr ? 0 : *found;
    };
    const double whole = std::accumulate(first->begin(), first->end(), 0.0,
                                         [](double total, const auto& part) { return total + part.second; });
    if (whole <= 0) continue;
    for (const std::string_view part : experiments::time_parts) {
      const std::string name(part);
      if (first->contains(name) || second->contains(name))
        changes[name].push_back((seconds(*second, name) - seconds(*first, name)) / whole);
    }
  }
  std::vector<PartChange> found;
  for (const auto& [part, shares] : changes) {
    constexpr double level = 0.95;
    PartChange& change = found.emplace_back(PartChange{
        .part = part, .change = mean_of(shares), .ci95 = {}, .n = static_cast<int>(shares.size())});
    if (shares.size() > 1) change.ci95 = confidence_interval(paired_estimate(shares), level);
  }
  std::ranges::sort(found, std::ranges::greater{},
                    [](const PartChange& change) { return std::abs(change.change); });
  return found;
}

}  // namespace

std::vector<Cause> causes_of(const ReportData& data, const experiments::Compare& compare,
                             const ArmRuns& baseline, const ArmRuns& arm) {
  std::deque<Facts> facts;  // keeps its references
  std::vector<ExplainedPair> pairs;
  for (const PairOfRuns& pair : pairs_of(compare, baseline, arm)) {
    const Facts& first = facts.emplace_back(facts_of(data, *pair.baseline->run));
    const Facts& second = facts.emplace_back(facts_of(data, *pair.arm->run));
    if (second.recorded)
      pairs.push_back({first, second, baseline.value});  // also if its records failed the run
  }
  for (ExplainedPair& pair : pairs) pair.pairs = pairs.size();
  std::vector<Cause> causes;
  apply(result_rules(), pairs, causes);
  apply(time_rules(), pairs, causes);
  // Arms that are not paired have other seeds, so other weights do not count.
  if (compare.pair.empty()) std::erase_if(causes, [](const Cause& cause) { return cause.name == "weights"; });
  return causes;
}

SecondsByRun seconds_by_run(const ReportData& data) {
  SecondsByRun by_run;
  for (const db::TimeParts& parts : data.times) by_run[parts.run_key] = &parts.seconds;
  return by_run;
}

void add_part_changes(const SecondsByRun& seconds, const experiments::Compare& compare, const CellRuns& runs,
                      Cell& cell) {
  for (std::size_t i = 0; i < runs.arms.size(); ++i)
    cell.arms[i].part_changes = part_changes(seconds, compare, runs.baseline, runs.arms[i]);
}

}  // namespace trainyard::reports
