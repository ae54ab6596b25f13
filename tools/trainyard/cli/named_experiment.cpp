#include "tools/trainyard/cli/named_experiment.h"

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/files.h"
#include "base/named_row.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

void note_change(const ExperimentOptions& experiment, const char* again) {
  if (fs::exists(experiment.file) && whole_file(experiment.file) != experiment.toml)
    std::cerr << "note: " << experiment.file.string()
              << " has changed since the last run. This command uses the recorded file, " << again
              << " uses the new one\n";
}

// True for "first.toml" and "dir/first": these are files, even if an experiment has that name.
bool is_written_as_path(const fs::path& text) {
  return text.has_parent_path() || text.extension() == ".toml";
}

void prefer(std::vector<std::string>& given, std::vector<std::string>& before) {
  if (given.empty()) given = std::move(before);
}

}  // namespace

ExperimentOptions journalled_experiment(const db::Database& database, const std::string& name,
                                        const char* again) {
  const db::Plan plan = db::latest_plan(database, name);
  const auto asked = plan.asked.is_object() ? plan.asked : nlohmann::json::object();
  const std::vector<std::string> none;
  ExperimentOptions found;
  found.toml = plan.toml;
  found.file = plan.file;
  if (asked.contains("folder")) found.file = asked.at("folder").get<std::string>() / found.file.filename();
  found.selection = {asked.value("set", none), asked.value("where", none), asked.value("exclude_where", none),
                     asked.value("as", std::string())};
  if (asked.contains("data")) found.data = asked.at("data").get<std::string>();
  note_change(found, again);
  return found;
}

void complete_from_journal(ExperimentOptions& options) {
  const std::string name = options.file.string();
  if (fs::exists(options.file) && !fs::is_directory(options.file)) return;
  if (!orchestrator::yard_from(options.yard).exists()) return;  // reading the file reports the error later
  const auto database = open_yard(options.yard);
  const auto names = db::experiment_names(database);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    if (is_written_as_path(options.file) || names.empty()) return;
    throw UserError("\"" + name + "\" is neither a file nor an experiment of this yard" +
                    name_advice(name, names));
  }
  auto journalled = journalled_experiment(database, name, "`trainyard run FILE`");
  options.file = journalled.file;
  options.toml = journalled.toml;
  prefer(options.selection.set, journalled.selection.set);
  prefer(options.selection.where, journalled.selection.where);
  prefer(options.selection.exclude_where, journalled.selection.exclude_where);
  if (options.selection.as.empty()) options.selection.as = journalled.selection.as;
  if (!options.data) options.data = journalled.data;
}

}  // namespace trainyard::tools
