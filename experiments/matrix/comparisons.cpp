#include "experiments/matrix/comparisons.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/joined.h"
#include "experiments/config/vocabulary.h"
#include "experiments/design/contract.h"
#include "experiments/matrix/selection.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

namespace {

// Different values of `axis` among the runs, in their order.
std::vector<models::Value> axis_values(const std::string& axis, const std::vector<ExpandedRun>& runs) {
  std::vector<models::Value> found;
  std::set<models::Value> seen;
  for (const ExpandedRun& each : runs) {
    const auto values = values_by_name(each.run);
    const auto value = values.find(axis);
    if (value != values.end() && seen.insert(value->second).second) found.push_back(value->second);
  }
  return found;
}

std::string list_of(const std::vector<models::Value>& values) {
  return models::joined(values, plain_text);
}

// The value of the axis that the file means; nothing where there is none.
std::optional<models::Value> baseline(const CompareTable& table, const std::vector<models::Value>& values) {
  const std::string wanted = table.baseline ? plain_text(*table.baseline) : "single";
  if (!table.baseline && table.compare.axis != "strategy") return std::nullopt;
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const models::Value& value) { return means(wanted, value); });
  if (found == values.end()) return std::nullopt;
  return *found;
}

void report_baseline(const CompareTable& table, const std::vector<models::Value>& values,
                     Problems& problems) {
  const std::string& axis = table.compare.axis;
  if (values.empty()) {
    problems.error(table.at, "no run has a value of the axis " + axis);
  } else if (!table.baseline && axis != "strategy") {
    problems.error(table.at,
                   "the comparison of " + axis + " has no baseline; its values are " + list_of(values));
  } else {
    const std::string wanted = table.baseline ? plain_text(*table.baseline) : "single";
    problems.error(table.baseline_at, "baseline " + in_quotes(wanted) + " is not a value of " + axis +
                                          "; its values are " + list_of(values));
  }
}

// What two runs must share to be of one cell and one pair: every varied value but that of the axis. Runs that
// differ in the seed alone state the same: `whatever_seed` leaves it out.
std::string place_of(const std::map<std::string, models::Value>& values, const Compare& compare,
                     const std::vector<std::string>& varied, bool whatever_seed = false) {
  std::string place = compare.axis == "model" ? "" : plain_text(values.at("model"));
  for (const std::string& name : varied) {
    const auto value = values.find(name);
    if (name != compare.axis && value != values.end() && !(whatever_seed && name == "seed"))
      place += "\n" + name + "=" + plain_text(value->second);
  }
  return place;
}

// Said once for each model and value of the axis, whatever the seed. Not of a file that is wrong: its runs
// may have values of which no network can be made.
void warn_of_differences(const Compare& compare, const CompareTable& table,
                         const std::vector<std::string>& varied, const std::vector<ExpandedRun>& runs,
                         Problems& problems) {
  if (problems.errors() > 0) return;
  using Values = std::map<std::string, models::Value>;
  std::map<std::string, Values> baselines;
  std::vector<Values> arms;
  for (const ExpandedRun& each : runs) {
    Values values = values_by_name(each.run);
    const auto value = values.find(compare.axis);
    if (value == values.end()) continue;
    if (plain_text(value->second) == compare.baseline)
      baselines.emplace(place_of(values, compare, varied), std::move(values));
    else
      arms.push_back(std::move(values));
  }
  std::set<std::string> judged;
  for (const Values& arm : arms) {
    const auto baseline = baselines.find(place_of(arm, compare, varied));
    if (baseline == baselines.end()) continue;
    const std::string kind = place_of(arm, compare, varied, true) + "\n" + plain_text(arm.at(compare.axis));
    if (!judged.insert(kind).second) continue;
    for (const TermDifference& difference :
         differing_terms(stated_by(baseline->second), stated_by(arm), compare)) {
      if (difference.declared) continue;
      problems.warning(table.at, "NOT COMPARABLE: " + plain_text(arm.at("model")) + " " +
                                     plain_text(arm.at(compare.axis)) + " against " + compare.baseline +
                                     ": " + to_text(difference) +
                                     "; make it equal, or say that it is meant: differs = [" +
                                     in_quotes(difference.declare_as) + "]");
    }
  }
}

std::optional<Compare> checked(const CompareTable& table, const Sheet& sheet,
                               const std::vector<ExpandedRun>& runs, Problems& problems) {
  const std::vector<models::Value> values = axis_values(table.compare.axis, runs);
  const auto value = baseline(table, values);
  const bool overridden = sheet.overrides.contains(table.compare.axis);
  if (!value && !overridden) report_baseline(table, values, problems);
  if (values.size() < 2 && (value || overridden))
    problems.warning(table.at, "nothing is compared: all runs have the same " + table.compare.axis);
  if (!value) return std::nullopt;
  Compare compare = table.compare;
  compare.baseline = plain_text(*value);
  return compare;
}

}  // namespace

std::vector<Compare> comparisons(const Sheet& sheet, const std::vector<ExpandedRun>& runs,
                                 const std::vector<std::string>& varied, Problems& problems) {
  std::vector<Compare> found;
  if (!sheet.compare_given) {
    const CompareTable usual{};
    const std::vector<models::Value> strategies = axis_values(usual.compare.axis, runs);
    if (strategies.size() > 1 && baseline(usual, strategies)) {
      warn_of_differences(usual.compare, usual, varied, runs, problems);
      found.push_back(usual.compare);
    }
    return found;
  }
  if (sheet.matrix.broken || runs.empty()) return found;
  for (const CompareTable& table : sheet.compare)
    if (!table.compare.axis.empty())
      if (auto compare = checked(table, sheet, runs, problems)) {
        warn_of_differences(*compare, table, varied, runs, problems);
        found.push_back(std::move(*compare));
      }
  return found;
}

}  // namespace trainyard::experiments
