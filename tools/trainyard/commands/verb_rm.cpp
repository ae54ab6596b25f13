// trainyard rm RUN… [--where …]: take runs out of the results. The journal keeps a tombstone, so that a
// rebuilt database leaves them out too; their files stay unless asked for.
#include <algorithm>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "db/queries/queries.h"
#include "orchestrator/plan/resume_point.h"
#include "orchestrator/yard/attempt_number.h"
#include "orchestrator/yard/journal.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/open_yard.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/run_choice.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

struct RmOptions {
  std::vector<std::string> runs, where;
  bool files = false, dry_run = false;
  std::optional<fs::path> yard;
};

// The last attempt of each that the database or the files know.
std::map<std::string, int> attempts_of(const std::vector<std::string>& keys, const orchestrator::Yard& yard,
                                       const db::Database& database) {
  std::map<std::string, int> last;
  for (const auto& key : keys) {
    const auto attempts = db::attempts_of_run(database, key);
    last[key] =
        std::max(attempts.empty() ? 0 : attempts.back().attempt, orchestrator::last_attempt(yard.run(key)));
  }
  return last;
}

// The folders of the attempts stay, empty: their numbers are not used again.
void remove_files(const orchestrator::Yard& yard, const std::string& key, int attempts) {
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    const fs::path folder = yard.attempt(key, attempt);
    if (!fs::is_directory(fs::symlink_status(folder))) continue;
    for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
  }
}

std::string attempts_text(int attempts) {
  return " (" + models::counted(static_cast<std::size_t>(attempts), "attempt") + ")";
}

int list_chosen(const RmOptions& options, const orchestrator::Yard& yard) {
  const auto database = open_yard(options.yard);
  const auto attempts = attempts_of(chosen_runs(database, options.runs, options.where), yard, database);
  for (const auto& [key, last] : attempts)
    std::cout << "would remove " << key << attempts_text(last) << (options.files ? " and its files" : "")
              << '\n';
  std::cout << models::counted(attempts.size(), "run") << "; nothing was removed\n";
  return done;
}

int rm(const RmOptions& options) {
  if (options.runs.empty() && options.where.empty())
    throw UserError("no run is named", "give keys, an experiment's name, or --where NAME=VALUE");
  const auto yard = orchestrator::yard_from(options.yard);
  (void)open_yard(options.yard);  // says what to do where there is none
  if (options.dry_run) return list_chosen(options, yard);
  const orchestrator::YardLock lock(yard, "trainyard rm");
  auto database = db::open_yard_for_writing(yard.root());
  const auto attempts = attempts_of(chosen_runs(database, options.runs, options.where), yard, database);
  for (const auto& [key, last] : attempts)
    if (options.files && yard.leads_out(key))
      throw UserError(yard.run(key).string() + " is a link: the files behind it stay", "leave --files out");
  const auto entry = orchestrator::rm_entry(attempts);
  orchestrator::append_to_journal(yard.journal(), entry);
  db::Ingest(database).journal_entry(entry);
  for (const auto& [key, last] : attempts) {
    orchestrator::remove_checkpoints(yard, key);  // the next attempt begins anew
    if (options.files) remove_files(yard, key, last);
    std::cout << "removed " << key << attempts_text(last)
              << (options.files ? " and its files" : "; its files stay in " + yard.run(key).string()) << '\n';
  }
  return done;
}

}  // namespace

void add_rm(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("rm", "take runs out of the results; `run` trains them anew");
  auto options = std::make_shared<RmOptions>();
  command->add_option("RUN", options->runs,
                      "keys, unique prefixes of them, `last`, or experiments with all of their runs");
  command
      ->add_option(
          "--where", options->where,
          "of these only the runs with these values: --where model=mlp,strategy=ddp; without RUN of the "
          "experiment that was run last")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--files", options->files, "delete their files too");
  command->add_flag("--dry-run", options->dry_run, "list the runs, remove nothing");
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return rm(*options); }; });
}

}  // namespace trainyard::tools
