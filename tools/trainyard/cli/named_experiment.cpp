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

std::vector<std::string> asked_list(const nlohmann::json& asked, const char* name) {
  return asked.is_object() ? asked.value(name, std::vector<std::string>()) : std::vector<std::string>();
}

fs::path journalled_file(const db::Plan& plan) {
  fs::path named(plan.file);
  if (!plan.asked.is_object()) return named;
  return fs::path(plan.asked.value("folder", std::string())) / named.filename();
}

void note_change(const JournalledExperiment& experiment, const char* again) {
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

JournalledExperiment journalled_experiment(const db::Database& database, const std::string& name,
                                           const char* again) {
  const db::Plan plan = db::latest_plan(database, name);
  JournalledExperiment found;
  found.name = plan.experiment;
  found.toml = plan.toml;
  found.file = journalled_file(plan);
  found.selection = {asked_list(plan.asked, "set"), asked_list(plan.asked, "where"),
                     asked_list(plan.asked, "exclude_where"),
                     plan.asked.is_object() ? plan.asked.value("as", std::string()) : std::string()};
  if (plan.asked.is_object() && plan.asked.contains("data"))
    found.data = plan.asked.at("data").get<std::string>();
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
