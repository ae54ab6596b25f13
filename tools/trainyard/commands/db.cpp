// trainyard db check | backup | rebuild: maintenance of a yard's database.
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "db/ingest/maintenance.h"
#include "orchestrator/yard/journal.h"
#include "orchestrator/yard/yard.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/commands/commands.h"

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

// Print what to do. No advice loses a result that only one side has.
void print_advice(bool damaged, const db::FileCheck& files, bool reads_only) {
  if (damaged && (files.rebuild_loses || !files.unreadable.empty()))
    std::cout << "the database is damaged, and may be the only place of results that the files lack: copy "
                 "results.db and restore the named files from a backup before `trainyard db rebuild`\n";
  else if (damaged)
    std::cout << "the database is damaged; `trainyard db rebuild` rebuilds it from the files\n";
  else if (files.rebuild_loses)
    std::cout
        << "the database is intact, and may be the only place of results that the files lack: do not run "
           "`trainyard db rebuild`, copy the database with `trainyard db backup FILE`, and restore the "
           "named files from a backup\n";
  else if (files.rebuild_helps)
    std::cout
        << "the database is intact, but differs from the files; `trainyard db rebuild` rebuilds it from "
           "the files\n";
  else
    std::cout << "the database is intact, and lacks nothing that can be read: restore the named files from a "
                 "backup, or leave them as they are\n";
  if (reads_only) std::cout << "you have no write access to this yard: ask somebody who has it\n";
}

// A damaged database is compared too, if SQLite can read it.
db::FileCheck compared(const orchestrator::Yard& yard, const db::Database& database, bool damaged,
                       db::Workplace place) {
  if (!damaged) return db::check_files(yard.root(), &database, place);
  try {
    return db::check_files(yard.root(), &database, place);
  } catch (const db::StorageError&) {
    return db::check_files(yard.root(), nullptr, place);
  }
}

int check(const DbOptions& options) {
  const auto yard = orchestrator::yard_from(options.yard);
  (void)open_yard(options.yard);
  const QuiescentYard still(yard);
  const auto database = open_yard(options.yard);
  const auto damage = db::damage(database);
  const auto files = compared(yard, database, !damage.empty(),
                              still.reads_only() ? db::Workplace::temporary_files : db::Workplace::yard);
  still.require();
  const std::vector<std::string> none;
  bool sound = true;
  for (const auto* problems : {&damage, damage.empty() ? &files.differences : &none, &files.unreadable,
                               &files.incomplete_files, damage.empty() ? &files.beliefs : &none})
    for (const auto& problem : *problems) {
      std::cout << problem << '\n';
      sound = false;
    }
  for (const auto& line : files.unsealed) std::cout << line << '\n';
  if (sound) {
    std::cout << yard.database().string() << ": intact, and equal to the files\n";
    return done;
  }
  print_advice(!damage.empty(), files, still.reads_only());
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
  const auto [result, kept] = db::rebuild(yard.root());
  for (const auto& problem : result.problems) std::cerr << problem << '\n';
  std::cout << "rebuilt " << yard.database().string() << " from " << result.records << " records";
  if (result.damaged_lines + result.damaged_spools > 0)
    std::cout << "; left out: " << counted(result.damaged_lines, "damaged line") << ", the rest of "
              << counted(result.damaged_spools, "damaged spool");
  std::cout << "; the old database is kept as " << kept.filename().string() << '\n';
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

}  // namespace trainyard::tools
