// trainyard rm RUN… [--where …]: removes the results of runs, which stay planned. The journal keeps a
// tombstone with the results, so that a rebuilt database leaves them out too and verdicts can name them. The
// files of the runs stay unless --files is given.
#include <algorithm>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/named_row.h"
#include "base/text.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "db/queries/earlier_results.h"
#include "db/queries/queries.h"
#include "experiments/matrix/selection.h"
#include "orchestrator/plan/resume_point.h"
#include "orchestrator/yard/journal.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

// Keeps the runs that match the conditions of --where. UserError if none does.
void keep_matching(const std::vector<std::string>& where, std::vector<db::RunSummary>& runs) {
  std::vector<std::map<std::string, Value>> values;
  values.reserve(runs.size());
  for (const auto& run : runs) values.push_back(run.axes);
  experiments::Diagnostics problems;
  const std::vector<bool> matches = experiments::matching(where, values, "--where", problems);
  if (problems.errors() > 0) {
    const Problem first = problems.in_file_order().front();
    throw UserError(first.message, "", first.location);
  }
  std::size_t place = 0;
  std::erase_if(runs, [&](const auto&) { return !matches[place++]; });
  if (runs.empty())
    throw UserError("no run has " + joined(where), "list the runs with `trainyard status --all`");
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

// Keys of the selected runs, without duplicates.
// - names: keys, unique prefixes of keys, "last", or experiments with all of their runs. If empty, the
//   experiment that was run last.
// - where: "model=mlp,strategy=ddp" keeps the runs with these values. Values of one name are alternatives.
// - UserError if a name is unknown or ambiguous, or if no run matches.
std::vector<std::string> chosen_runs(const db::Database& database, const std::vector<std::string>& names,
                                     const std::vector<std::string>& where) {
  std::vector<db::RunSummary> runs;
  for (const std::string& name :
       names.empty() ? std::vector<std::string>{experiment_named(database, "")} : names)
    for (auto& run : runs_named(database, name)) runs.push_back(std::move(run));
  if (!where.empty()) keep_matching(where, runs);
  std::vector<std::string> keys;
  for (const auto& run : runs)
    if (std::ranges::find(keys, run.run_key) == keys.end()) keys.push_back(run.run_key);
  return keys;
}

struct RmOptions {
  std::vector<std::string> runs, where;
  bool files = false, dry_run = false;
  std::optional<fs::path> yard;
};

// The number of the last attempt of each run that has one in the database. Its files may have later ones.
// UserError if no run has one.
std::map<std::string, int> attempts_of(const std::vector<std::string>& keys, const orchestrator::Yard& yard,
                                       const db::Database& database) {
  std::map<std::string, int> last;
  for (const auto& key : keys) {
    const auto attempts = db::attempts_of_run(database, key);
    if (!attempts.empty())
      last[key] = std::max(attempts.back().attempt, orchestrator::last_attempt(yard.run(key)));
  }
  if (last.empty())
    throw UserError("none of these runs has been trained, or all were removed before",
                    "list the runs with `trainyard status --all`");
  return last;
}

// Empty the folders of the attempts. The folders stay, so that their numbers are not used again.
void remove_files(const orchestrator::Yard& yard, const std::string& key, int attempts) {
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    const fs::path folder = yard.attempt(key, attempt);
    if (!is_folder(folder)) continue;
    for (const std::string& name : names_in(folder)) fs::remove_all(folder / name);
  }
}

std::string attempts_text(int attempts) {
  return " (" + counted(static_cast<std::size_t>(attempts), "attempt") + ")";
}

int list_chosen(const RmOptions& options, const orchestrator::Yard& yard) {
  const auto database = open_yard(options.yard);
  const auto attempts = attempts_of(chosen_runs(database, options.runs, options.where), yard, database);
  for (const auto& [key, last] : attempts)
    std::cout << "would remove " << key << attempts_text(last) << (options.files ? " and its files" : "")
              << '\n';
  std::cout << counted(attempts.size(), "run") << "; nothing was removed\n";
  return done;
}

int rm(const RmOptions& options) {
  if (options.runs.empty() && options.where.empty())
    throw UserError("no run is named", "name run keys or an experiment, or use --where NAME=VALUE");
  const auto yard = existing_yard(options.yard);
  if (options.dry_run) return list_chosen(options, yard);
  const orchestrator::YardLock lock(yard, "trainyard rm");
  auto database = db::open_yard_for_writing(yard.root(), [](const auto& line) { std::cout << line << '\n'; });
  const auto attempts = attempts_of(chosen_runs(database, options.runs, options.where), yard, database);
  for (const auto& [key, last] : attempts)
    if (options.files && yard.leads_out(key))
      throw UserError(yard.run(key).string() + " is a link: the files behind it stay", "leave out --files");
  std::vector<std::string> keys;
  keys.reserve(attempts.size());
  for (const auto& [key, last] : attempts) keys.push_back(key);
  const auto entry = orchestrator::rm_entry(attempts, db::results_of(database, keys));
  orchestrator::append_to_journal(yard.journal(), entry);
  db::Ingest(database).journal_entry(entry);
  for (const auto& [key, last] : attempts) {
    orchestrator::remove_checkpoints(yard, key);  // the next attempt starts from the beginning
    if (options.files) remove_files(yard, key, last);
    std::cout << "removed " << key << attempts_text(last)
              << (options.files ? " and its files" : "; its files stay in " + yard.run(key).string()) << '\n';
  }
  return done;
}

}  // namespace

void add_rm(CLI::App& program, Invocation& invocation) {
  const auto [command, options] = add_verb(
      program, invocation, "rm", "remove runs from the results, so that `run` trains them again", rm);
  command->add_option("RUN", options->runs,
                      "keys, unique prefixes of them, `last`, or experiments with all of their runs");
  command
      ->add_option(
          "--where", options->where,
          "only runs with these values: --where model=mlp,strategy=ddp (default RUN: the experiment that was "
          "run last)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--files", options->files, "delete their files too");
  command->add_flag("--dry-run", options->dry_run, "list the runs, remove nothing");
  add_yard_option(*command, options->yard);
}

}  // namespace trainyard::tools
