#include "tools/trainyard/cli/command.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/text.h"
#include "db/ingest/maintenance.h"
#include "db/queries/queries.h"
#include "tools/trainyard/cli/recorded_runs.h"

namespace trainyard::tools {

CLI::App* add_verb(CLI::App& parent, Invocation& invocation, const char* name, const std::string& about,
                   std::function<int()> action) {
  CLI::App* command = parent.add_subcommand(name, about);
  command->callback([&invocation, action = std::move(action)] { invocation = action; });
  return command;
}

void add_yard_option(CLI::App& command, std::optional<std::filesystem::path>& yard) {
  refuse_empty(
      command.add_option("--yard", yard, "folder of results (default: $TRAINYARD_HOME, else ./yard)")
          ->type_name("DIR"));
}

CLI::Option* refuse_empty(CLI::Option* option) {
  const auto problem = [](const std::string& text) {
    return std::string(text.empty() ? "is empty; give a value, or leave it out" : "");
  };
  return option->check(CLI::Validator(problem, ""));
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  const auto problem = [names](const std::string& text) {
    const bool known = std::ranges::find(names, text) != names.end();
    return known ? std::string() : "there is no \"" + text + "\"" + name_advice(text, names);
  };
  return {problem, "{" + joined(names, {}, ",") + "}"};
}

orchestrator::Yard existing_yard(const std::optional<std::filesystem::path>& yard) {
  auto place = orchestrator::yard_from(yard);
  orchestrator::refuse_links(place);
  db::refuse_other_format(place.root());
  add_recorded_runs(place);
  if (!place.exists())
    throw UserError("no results in " + place.root().string(),
                    "name the folder with --yard or TRAINYARD_HOME, or make one with `trainyard run FILE`");
  return place;
}

db::Database open_yard(const std::optional<std::filesystem::path>& yard) {
  return db::Database::open_read_only(existing_yard(yard).database());
}

namespace {

constexpr auto poll_interval = std::chrono::milliseconds(50);

bool has_an_experiment(const orchestrator::Yard& yard) {
  try {
    return yard.exists() && !db::experiment_names(db::Database::open_read_only(yard.database())).empty();
  } catch (const std::exception&) {  // its tables are being created
    return false;
  }
}

}  // namespace

void wait_for_first_entry(const std::optional<std::filesystem::path>& yard,
                          const std::function<bool()>& stopped) {
  const auto place = orchestrator::yard_from(yard);
  while (!stopped() && !has_an_experiment(place) && orchestrator::in_use(place))
    std::this_thread::sleep_for(poll_interval);
}

std::string experiment_named(const db::Database& database, const std::string& name) {
  const auto names = db::experiment_names(database);
  if (names.empty()) throw UserError("this yard has no experiment yet", "make one with `trainyard run FILE`");
  if (name.empty()) return names.back();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError("no experiment \"" + name + "\" in this yard" + name_advice(name, names));
  return name;
}

namespace {

constexpr const char* all_runs_advice = "list the runs with `trainyard status --all`";

// "small: mlp ddp seed 0"
std::string description(const db::RunSummary& run) {
  return (run.experiment.empty() ? "" : run.experiment + ": ") + run.model + " " + run.strategy + " seed " +
         std::to_string(run.seed);
}

// Whether each word of `text` is a word of the run's description, or begins one: "mlp ddp", "seed 3".
bool is_described(const db::RunSummary& run, const std::string& text) {
  std::istringstream wanted(text);
  for (std::string word; wanted >> word;) {
    std::istringstream words(description(run));
    bool found = false;
    for (std::string each; words >> each;) found = found || each.starts_with(word);
    if (!found) return false;
  }
  return true;
}

// Whether `key` begins like `text`, with at most one mistake per three characters.
bool is_near(const std::string& key, const std::string& text) {
  const std::vector<std::string> beginning{key.substr(0, text.size())};
  return text.size() > 1 && text.size() <= key.size() && !nearest_name(text, beginning).empty();
}

// Runs that `text` may mean, one per line. Empty if there are none.
std::string similar_runs(const std::vector<db::RunSummary>& runs, const std::string& text) {
  constexpr std::size_t most = 5;
  std::set<std::string> keys;
  std::string lines;
  for (const auto& run : runs) {
    if (!is_near(run.run_key, text) && !is_described(run, text)) continue;
    if (!keys.insert(run.run_key).second || keys.size() > most) continue;
    lines += "\n  " + run.run_key + "  " + description(run) + ", " + run.status;
  }
  if (keys.size() > most) lines += "\n  and " + counted(keys.size() - most, "run") + " more";
  return lines;
}

[[noreturn]] void refuse_unknown_run(const db::Database& database, const std::string& text) {
  const auto runs = db::run_summaries(database);
  if (runs.empty()) throw UserError("no run \"" + text + "\": this yard has no run yet");
  if (text == "last") throw UserError("no run of this yard was launched yet", all_runs_advice);
  const auto names = db::experiment_names(database);
  const bool experiment = std::find(names.begin(), names.end(), text) != names.end();
  const std::string similar = similar_runs(runs, text);
  throw UserError(
      (experiment ? "\"" + text + "\" is an experiment, not a run" : "no run \"" + text + "\" in this yard"),
      all_runs_advice + (similar.empty() ? "" : (experiment ? "\nits runs:" : "\nsimilar runs:") + similar));
}

}  // namespace

std::string run_named(const db::Database& database, const std::string& text) {
  if (text.empty()) throw UserError("the run key is empty", all_runs_advice);
  const auto keys = db::keys_with_prefix(database, text);
  if (keys.empty()) refuse_unknown_run(database, text);
  if (keys.size() > 1)
    throw UserError(fmt::format("\"{}\" matches {} runs: {}, {}{}", text, keys.size(), keys[0], keys[1],
                                keys.size() > 2 ? ", …" : ""),
                    "give more digits");
  return keys.front();
}

}  // namespace trainyard::tools
