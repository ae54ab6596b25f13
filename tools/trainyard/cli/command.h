// What all subcommands share: their exit codes, and the option that names the yard.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "db/database/database.h"
#include "orchestrator/yard/yard.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI
namespace trainyard::tools {

// Exit codes; a run that is not as its file expects or whose arm is BROKEN has failed as well, and so has a
// verb whose output the disk did not take; without a verb the help is printed, and that is `done`; 3 is what
// `compare --fail-on` asks for. See docs/comparing.md.
enum ExitCode : int { done = 0, run_failed = 1, wrong_usage = 2, gate_failed = 3, interrupted = 130 };

struct Invocation {
  std::function<int()> action;
};

// `--yard DIR`, the same for every verb that reads or writes one.
void add_yard_option(CLI::App& command, std::optional<std::filesystem::path>& yard);

// Refuses "", which a variable that was not set leaves, where a path is wanted.
CLI::Option* refuse_empty(CLI::Option* option);

// The database of a yard for verbs that only read, and the runs that a user names in it.

// UserError that says how to make one if there is none.
orchestrator::Yard existing_yard(const std::optional<std::filesystem::path>& yard);

// UserError as of `existing_yard`, or if the database has an older schema: which command makes it again.
db::Database open_yard(const std::optional<std::filesystem::path>& yard);

// The experiment that `name` says, or the one run last; UserError lists the known ones.
std::string experiment_named(const db::Database& database, const std::string& name);

// Waits while a sweep that has just begun has written nothing yet, and `stopped` is not true.
void wait_for_first_entry(const std::optional<std::filesystem::path>& yard,
                          const std::function<bool()>& stopped);

// Throws the UserError for a text that stands for no run: it lists runs with a similar key or name.
[[noreturn]] void refuse_unknown_run(const db::Database& database, const std::string& text);

// The one run that `text` stands for: "last" or a unique prefix of its key.
std::string run_named(const db::Database& database, const std::string& text);

}  // namespace trainyard::tools
