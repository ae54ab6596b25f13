#include "reports/verdicts/comparison.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "experiments/design/contract.h"
#include "experiments/run/strategies.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

constexpr const char* group_axis = "group";

struct GroupValue {
  std::string name;
  std::string value;
};

// One side of the comparison: conditions or a run.
struct Group {
  std::string text;
  std::vector<GroupValue> conditions;
  std::string run_key;
};

std::vector<std::string> names_of(const ReportData& data) {
  std::set<std::string> names{"model", "strategy", "seed"};
  for (const db::RunSummary& run : data.runs)
    for (const auto& [name, value] : run.axes) names.insert(name);
  return {names.begin(), names.end()};
}

std::vector<std::string> values_of(const ReportData& data, const std::string& name) {
  std::vector<std::string> values;
  for (const db::RunSummary& run : data.runs) add_new(values, value_of(run, name));
  return values;
}

void check_condition(const ReportData& data, const GroupValue& condition) {
  const std::vector<std::string> names = names_of(data);
  if (std::ranges::find(names, condition.name) == names.end())
    throw UserError(fmt::format("no run has a value called \"{}\"{}", condition.name,
                                name_advice(condition.name, names)));
  const std::vector<std::string> values = values_of(data, condition.name);
  if (std::ranges::find(values, condition.value) == values.end())
    throw UserError(fmt::format("no run has {}={}; values of {} are {}", condition.name, condition.value,
                                condition.name, joined(values)));
}

Group parsed(const ReportData& data, const std::string& text, const std::string& axis) {
  Group group{text, {}, ""};
  if (text.find('=') != std::string::npos) {
    for (std::size_t start = 0; start <= text.size();) {
      const std::string part = text.substr(start, text.find(',', start) - start);
      start += part.size() + 1;
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos)
        throw UserError(fmt::format("\"{}\" in \"{}\" has no =", part, text), "write strategy=ddp,batch=64");
      group.conditions.push_back({part.substr(0, equals), part.substr(equals + 1)});
      check_condition(data, group.conditions.back());
    }
    return group;
  }
  const std::vector<std::string> values = values_of(data, axis);
  if (std::ranges::find(values, text) != values.end()) {
    group.conditions.push_back({axis, text});
    return group;
  }
  std::vector<std::string> keys;
  for (const db::RunSummary& run : data.runs)
    if (run.run_key.starts_with(text)) keys.push_back(run.run_key);
  if (keys.size() == 1) {
    group.run_key = keys.front();
    return group;
  }
  throw UserError(
      fmt::format("\"{}\" is not a value of {}{}", text, axis,
                  keys.empty() ? " or the key of a run" : " and matches the keys of several runs"),
      fmt::format("give a value of {} ({}), NAME=VALUE or a run key", axis, joined(values)));
}

bool holds(const Group& group, const db::RunSummary& run) {
  if (!group.run_key.empty()) return run.run_key == group.run_key;
  return std::ranges::all_of(group.conditions, [&](const GroupValue& condition) {
    return value_of(run, condition.name) == condition.value;
  });
}

bool names(const Group& group, const std::string& name) {
  return std::ranges::find(group.conditions, name, &GroupValue::name) != group.conditions.end();
}

// The comparison in the file that includes A and B; null if there is none.
const experiments::Compare* planned_comparison(const ReportData& data, const Group& a, const Group& b) {
  if (a.conditions.size() != 1 || b.conditions.size() != 1 || a.conditions[0].name != b.conditions[0].name)
    return nullptr;
  // Independent runs are not an arm of a planned comparison.
  for (const db::RunSummary& run : data.runs)
    if (experiments::is_independent(run.kind) && holds(b, run)) return nullptr;
  for (const experiments::Compare& compare : data.plan.compare)
    if (compare.axis == a.conditions[0].name && compare.baseline == a.conditions[0].value) return &compare;
  return nullptr;
}

void keep_arm(JudgedComparison& comparison, const std::string& arm) {
  for (CellVerdicts& judged : comparison.cells) {
    for (std::size_t i = judged.cell.arms.size(); i-- > 0;) {
      if (judged.cell.arms[i].value == arm) continue;
      judged.cell.arms.erase(judged.cell.arms.begin() + static_cast<std::ptrdiff_t>(i));
      judged.comparability.erase(judged.comparability.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::erase_if(judged.verdicts, [&](const Verdict& verdict) { return verdict.arm != arm; });
  }
}

void refuse_shared_runs(const ReportData& data, const Group& a, const Group& b) {
  for (const db::RunSummary& run : data.runs)
    if (holds(a, run) && holds(b, run))
      throw UserError(fmt::format("run {} is in both groups, {} and {}", run.run_key, a.text, b.text));
}

// Assigns runs to the groups and removes all other runs.
void keep_groups(ReportData& data, const Group& a, const Group& b) {
  std::set<std::string> kept;
  for (db::RunSummary& run : data.runs) {
    const bool first = holds(a, run);
    if (!first && !holds(b, run)) continue;
    run.axes[group_axis] = first ? a.text : b.text;
    kept.insert(run.run_key);
  }
  std::erase_if(data.runs, [&](const db::RunSummary& run) { return !kept.contains(run.run_key); });
  for (const Group* group : {&a, &b})
    if (std::ranges::none_of(data.runs, [&](const db::RunSummary& run) { return holds(*group, run); }))
      throw UserError("no run matches " + group->text, "`trainyard status --runs` lists all runs");
}

}  // namespace

void check_differs(const ReportData& data, const std::vector<std::string>& differs) {
  std::vector<std::string> known = names_of(data);
  for (const std::string& name : experiments::contract_names()) add_new(known, name);
  for (const std::string& name : differs)
    if (std::ranges::find(known, name) == known.end())
      throw UserError(fmt::format("--differs: unknown name \"{}\"{}", name, name_advice(name, known)));
}

JudgedComparison compare_groups(ReportData& data, const GroupOptions& options) {
  const experiments::Compare usual =
      data.plan.compare.empty() ? experiments::Compare{} : data.plan.compare.front();
  const Group a = parsed(data, options.baseline, usual.axis);
  const Group b = parsed(data, options.arm, usual.axis);
  refuse_shared_runs(data, a, b);
  if (const experiments::Compare* planned = planned_comparison(data, a, b)) {
    JudgedComparison comparison{*planned, {}};
    comparison.compare.differs.insert(comparison.compare.differs.end(), options.differs.begin(),
                                      options.differs.end());
    comparison.cells = judge(data, comparison.compare);
    keep_arm(comparison, b.conditions.front().value);
    return comparison;
  }
  keep_groups(data, a, b);
  JudgedComparison comparison{usual, {}};
  comparison.compare.axis = group_axis;
  comparison.compare.baseline = a.text;
  comparison.compare.seeds.reset();
  if (!a.run_key.empty() && !b.run_key.empty())
    comparison.compare.pair.clear();  // single runs may have different seeds
  std::vector<std::string>& differs = comparison.compare.differs;
  differs.insert(differs.end(), options.differs.begin(), options.differs.end());
  for (const Group* group : {&a, &b})
    for (const GroupValue& condition : group->conditions) {
      differs.push_back(condition.name);
      std::erase(comparison.compare.pair, condition.name);  // seed=0 and seed=1 cannot be paired by seed
    }
  // Values that the groups name do not separate cells.
  std::erase_if(data.plan.varied, [&](const std::string& name) {
    return names(a, name) || names(b, name) || !a.run_key.empty() || !b.run_key.empty();
  });
  comparison.cells = judge(data, comparison.compare);
  if (std::ranges::all_of(comparison.cells, [](const CellVerdicts& one) { return one.verdicts.empty(); }))
    throw UserError(
        fmt::format("nothing to compare: {} and {} have no model and metric in common", a.text, b.text));
  for (CellVerdicts& judged : comparison.cells)
    for (TestedVerdict& verdict : judged.verdicts)
      verdict.caveats.push_back({exploratory_mark, "not planned in the experiment file"});
  return comparison;
}

}  // namespace trainyard::reports
