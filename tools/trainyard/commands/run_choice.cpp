#include "tools/trainyard/commands/run_choice.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "experiments/matrix/selection.h"
#include "tools/trainyard/cli/command.h"

namespace trainyard::tools {
namespace {

using Conditions = std::map<std::string, std::vector<std::string>>;  // values by name

Conditions conditions_of(const std::vector<std::string>& where) {
  Conditions conditions;
  for (const std::string& text : where) {
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos || equals == 0)
        throw UserError("--where \"" + part + "\" is not NAME=VALUE",
                        "for example --where model=mlp,strategy=ddp");
      conditions[part.substr(0, equals)].push_back(part.substr(equals + 1));
    }
  }
  if (conditions.empty()) throw UserError("--where is empty", "for example --where model=mlp,strategy=ddp");
  return conditions;
}

void check_names(const Conditions& conditions, const std::vector<db::RunSummary>& runs) {
  std::set<std::string> known;
  for (const auto& run : runs)
    for (const auto& [name, value] : run.axes) known.insert(name);
  const std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [name, values] : conditions)
    if (!known.contains(name))
      throw UserError("--where: no run has a value called \"" + name + "\"" + name_advice(name, names));
}

bool is_as(const db::RunSummary& run, const Conditions& conditions) {
  return std::ranges::all_of(conditions, [&](const auto& condition) {
    const auto value = run.axes.find(condition.first);
    return value != run.axes.end() && std::ranges::any_of(condition.second, [&](const std::string& text) {
             return experiments::means(text, value->second);
           });
  });
}

// The runs that one name selects.
std::vector<db::RunSummary> runs_named(const db::Database& database, const std::string& name) {
  const auto experiments = db::experiment_names(database);
  const bool experiment = std::ranges::find(experiments, name) != experiments.end();
  if (!experiment || name.empty()) {
    const std::string near = nearest_name(name, experiments);
    if (!near.empty() && db::keys_with_prefix(database, name).empty())
      throw UserError("neither a run nor an experiment of this yard is called \"" + name +
                      "\"; did you mean \"" + near + "\"?");
    const std::string key = run_named(database, name);
    auto runs = db::run_summaries(database);
    std::erase_if(runs, [&](const auto& run) { return run.run_key != key; });
    return runs;
  }
  if (!db::keys_with_prefix(database, name).empty())
    throw UserError("\"" + name + "\" is an experiment and also the beginning of a run key",
                    "give the whole key, or select runs with --where");
  return db::run_summaries(database, name);
}

}  // namespace

std::vector<std::string> chosen_runs(const db::Database& database, const std::vector<std::string>& names,
                                     const std::vector<std::string>& where) {
  std::vector<db::RunSummary> runs;
  for (const std::string& name :
       names.empty() ? std::vector<std::string>{experiment_named(database, "")} : names)
    for (auto& run : runs_named(database, name)) runs.push_back(std::move(run));
  if (!where.empty()) {
    const Conditions conditions = conditions_of(where);
    check_names(conditions, runs);
    std::erase_if(runs, [&](const auto& run) { return !is_as(run, conditions); });
    if (runs.empty())
      throw UserError("no run has " + joined(where), "list the runs with `trainyard status --all`");
  }
  std::vector<std::string> keys;
  for (const auto& run : runs)
    if (std::ranges::find(keys, run.run_key) == keys.end()) keys.push_back(run.run_key);
  return keys;
}

}  // namespace trainyard::tools
