// trainyard db check | backup | rebuild: looking after the database of a yard.
#include <iostream>

#include <CLI/CLI.hpp>

#include "db/maintenance.h"
#include "models/error.h"
#include "orchestrator/yard.h"
#include "tools/trainyard/command.h"
#include "tools/trainyard/open_yard.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

struct DbOptions {
  fs::path file;
  std::optional<fs::path> yard;
};

int check(const DbOptions& options) {
  const auto yard = orchestrator::yard_from(options.yard);
  (void)open_yard(options.yard);
  const orchestrator::YardLock lock(yard, "trainyard db check");
  const auto database = open_yard(options.yard);
  auto problems = db::damage(database);
  const bool sound = problems.empty();
  if (sound) problems = db::differences_from_files(yard.root(), database);
  for (const auto& problem : problems) std::cout << problem << '\n';
  if (problems.empty()) {
    std::cout << yard.database().string() << ": sound, and the same as the files say\n";
    return done;
  }
  std::cout << (sound ? "the database is sound, but says something else than the files; "
                      : "the database is damaged; ")
            << "`trainyard db rebuild` makes it again from them\n";
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
  const auto result = db::rebuild(yard.root());
  for (const auto& problem : result.problems) std::cerr << problem << '\n';
  std::cout << "rebuilt " << yard.database().string() << " from " << result.records << " records";
  if (result.damaged_lines + result.damaged_spools > 0)
    std::cout << "; left out: " << result.damaged_lines << " damaged lines, the rest of "
              << result.damaged_spools << " damaged spools";
  std::cout << "; the old one is results.db.before-rebuild\n";
  return done;
}

}  // namespace

void add_db(CLI::App& program, Invocation& invocation) {
  auto* group = program.add_subcommand("db", "check the database, copy it, or make it again from the files");
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
  add("check", "is it sound, and does it say what journal and records say", check);
  add("backup", "a consistent copy, also while a sweep runs", backup)
      ->add_option("FILE", options->file, "a file that is not there yet")
      ->required();
  add("rebuild", "make it again from journal and records", rebuild);
}

}  // namespace trainyard::tools
