// trainyard db check | backup | rebuild: maintenance of a yard's database.
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/text.h"
#include "db/ingest/maintenance.h"
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

// With write access it locks the yard. Without, it detects afterwards whether another process has locked it.
int check(const DbOptions& options) {
  const auto yard = orchestrator::yard_from(options.yard);
  (void)open_yard(options.yard);
  std::optional<orchestrator::YardLock> lock;
  if (orchestrator::may_write(yard))
    lock.emplace(yard, "trainyard db check");
  else if (orchestrator::in_use(yard))
    throw UserError("yard " + yard.root().string() + " is in use", "check it when the sweep has ended");
  const auto before = orchestrator::last_locked(yard);
  const auto database = open_yard(options.yard);
  const auto damage = db::damage(database);
  const auto files = db::check_files(yard.root(), damage.empty() ? &database : nullptr);
  if (!lock && (orchestrator::in_use(yard) || orchestrator::last_locked(yard) != before))
    throw UserError("yard " + yard.root().string() + " changed while it was checked",
                    "check it again when no sweep runs in it");
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
  print_rebuild(!damage.empty(), files, /*reads_only=*/!lock);
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
  const auto add = [&](const char* name, const char* about, int (*action)(const DbOptions&)) {
    auto verb = add_verb(*group, invocation, name, about, action);
    add_yard_option(*verb.command, verb.options->yard);
    return verb;
  };
  add("check", "check the database against the journal and the records\n\nRead access to the yard is enough.",
      check);
  const auto [copy, options] = add("backup", "write a consistent copy, also while a sweep runs", backup);
  refuse_empty(copy->add_option("FILE", options->file, "file to write, which must not exist")->required());
  add("rebuild", "rebuild the database from the journal and the records", rebuild);
}

}  // namespace trainyard::tools
