// trainyard db check | backup | rebuild: maintenance of a yard's database.
#include <algorithm>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "db/queries/earlier_results.h"
#include "db/queries/queries.h"
#include "orchestrator/plan/resume_point.h"
#include "orchestrator/yard/journal.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/commands/commands.h"
#include "tools/trainyard/commands/run_choice.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

struct DbOptions {
  fs::path file;
  std::optional<fs::path> yard;
};

// Guard against changes of a yard during a check. With write access it locks the yard. Without, `require`
// detects afterwards whether another process locked it.
class QuiescentYard {
 public:
  explicit QuiescentYard(const orchestrator::Yard& yard) : yard_(yard) {
    if (orchestrator::may_write(yard)) {
      lock_.emplace(yard, "trainyard db check");
    } else if (orchestrator::in_use(yard)) {
      throw UserError("yard " + yard.root().string() + " is in use", "check it when the sweep has ended");
    }
    last_locked_ = orchestrator::last_locked(yard);
  }
  bool reads_only() const { return !lock_; }
  void require() const {
    if (!lock_ && (orchestrator::in_use(yard_) || orchestrator::last_locked(yard_) != last_locked_))
      throw UserError("yard " + yard_.root().string() + " changed while it was checked",
                      "check it again when no sweep runs in it");
  }

 private:
  const orchestrator::Yard& yard_;
  std::optional<orchestrator::YardLock> lock_;
  fs::file_time_type last_locked_;
};

// What a rebuild would do. It loses nothing that can be read.
void print_rebuild(bool damaged, const db::FileCheck& files, bool reads_only) {
  if (damaged)
    std::cout << "the database is damaged: `trainyard db rebuild` makes it again from the files alone, and "
                 "keeps the old file\n";
  else if (!files.differences.empty())
    std::cout << "`trainyard db rebuild` makes the database again as said here, and keeps the old file\n";
  else
    std::cout << "a rebuild would change nothing: restore the named files from a backup, or leave them as "
                 "they are\n";
  if (reads_only) std::cout << "you have no write access to this yard: ask somebody who has it\n";
}

int check(const DbOptions& options) {
  const auto yard = orchestrator::yard_from(options.yard);
  (void)open_yard(options.yard);
  const QuiescentYard still(yard);
  const auto database = open_yard(options.yard);
  const auto damage = db::damage(database);
  const auto files = db::check_files(yard.root(), damage.empty() ? &database : nullptr);
  still.require();
  bool sound = true;
  for (const auto* findings : {&damage, &files.unreadable, &files.kept, &files.differences})
    for (const auto& finding : *findings) {
      std::cout << finding << '\n';
      sound = false;
    }
  if (sound) {
    std::cout << yard.database().string() << ": intact, and equal to the files\n";
    return done;
  }
  print_rebuild(!damage.empty(), files, still.reads_only());
  return run_failed;
}

int backup(const DbOptions& options) {
  const auto database = open_yard(options.yard);
  db::back_up(database, options.file);
  std::cout << "copied to " << options.file.string() << '\n';
  return done;
}

int rebuild(const DbOptions& options) {
  const auto yard = orchestrator::yard_from(options.yard);
  if (!fs::exists(yard.root() / "runs") && !fs::exists(yard.journal()))
    throw UserError("no yard in " + yard.root().string(), "name the folder with --yard or TRAINYARD_HOME");
  const orchestrator::YardLock lock(yard, "trainyard db rebuild");
  const auto [result, unused, kept] = db::rebuild(yard.root());
  for (const auto* lines : {&result.problems, &result.kept})
    for (const auto& line : *lines) std::cerr << line << '\n';
  if (!unused.empty()) std::cerr << "no rows of the old database are kept: " << unused << '\n';
  std::cout << "rebuilt " << yard.database().string() << " from " << result.records << " records";
  if (result.damaged_lines + result.damaged_files > 0)
    std::cout << "; left out: " << counted(result.damaged_lines, "damaged line") << ", the rest of "
              << counted(result.damaged_files, "damaged file");
  if (!kept.empty()) std::cout << "; the old database is kept as " << kept.filename().string();
  std::cout << '\n';
  return done;
}

}  // namespace

void add_db(CLI::App& program, Invocation& invocation) {
  auto* group = program.add_subcommand("db", "check, copy or rebuild the database");
  group->require_subcommand(1);
  auto options = std::make_shared<DbOptions>();
  const auto add = [&](const char* name, const char* about, int (*action)(const DbOptions&)) {
    auto* command = group->add_subcommand(name, about);
    add_yard_option(*command, options->yard);
    command->callback([options, &invocation, action] {
      invocation.action = [options, action] { return action(*options); };
    });
    return command;
  };
  add("check", "check the database against the journal and the records\n\nRead access to the yard is enough.",
      check);
  refuse_empty(add("backup", "write a consistent copy, also while a sweep runs", backup)
                   ->add_option("FILE", options->file, "file to write, which must not exist")
                   ->required());
  add("rebuild", "rebuild the database from the journal and the records", rebuild);
}

// trainyard rm RUN… [--where …]: removes the results of runs, which stay planned. The journal keeps a
// tombstone with the results, so that a rebuilt database leaves them out too and verdicts can name them. The
// files of the runs stay unless --files is given.

namespace {

namespace fs = std::filesystem;

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
  auto* command =
      program.add_subcommand("rm", "remove runs from the results, so that `run` trains them again");
  auto options = std::make_shared<RmOptions>();
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
  command->callback([options, &invocation] { invocation.action = [options] { return rm(*options); }; });
}

}  // namespace trainyard::tools
