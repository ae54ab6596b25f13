// Shared parts of all subcommands: exit codes, the option --yard, and access to the yard's database.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "db/database/database.h"
#include "orchestrator/yard/yard.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI
namespace trainyard::tools {

// Exit codes. See docs/comparing.md.
// - done: also if there is no verb and the help is printed.
// - run_failed: also if a run misses its file's expectations, an arm is BROKEN, or output cannot be written.
// - gate_failed: `compare --fail-on` found such a verdict.
enum ExitCode : int { done = 0, run_failed = 1, wrong_usage = 2, gate_failed = 3, interrupted = 130 };

using Invocation = std::function<int()>;  // what the user called

// Add a verb whose `action` runs if the user calls it.
CLI::App* add_verb(CLI::App& parent, Invocation& invocation, const char* name, const std::string& about,
                   std::function<int()> action);

template <typename Options>
struct VerbWithOptions {
  CLI::App* command = nullptr;
  std::shared_ptr<Options> options;
};

// As above, for an action that takes options. They are filled in when the command line is read.
template <typename Options>
auto add_verb(CLI::App& parent, Invocation& invocation, const char* name, const std::string& about,
              int (*action)(Options)) {
  auto options = std::make_shared<std::remove_cvref_t<Options>>();
  auto* command = add_verb(parent, invocation, name, about, [options, action] { return action(*options); });
  return VerbWithOptions<std::remove_cvref_t<Options>>{command, options};
}

// Add `--yard DIR`, the same for every verb that uses a yard.
void add_yard_option(CLI::App& command, std::optional<std::filesystem::path>& yard);

// Make an empty path an error: an unset shell variable leaves one.
CLI::Option* refuse_empty(CLI::Option* option);

// Accepts only `names`. The error suggests the nearest one.
CLI::Validator one_of(const std::vector<std::string>& names);

// The yard that the user named. UserError if there is none, or if it has another format.
orchestrator::Yard existing_yard(const std::optional<std::filesystem::path>& yard);

// The database of an existing yard, read-only. UserError if there is no yard or the schema is another.
db::Database open_yard(const std::optional<std::filesystem::path>& yard);

// The name of an experiment of the yard. If `name` is empty, the one that was run last.
// UserError if there is no such experiment.
std::string experiment_named(const db::Database& database, const std::string& name);

// Wait until a sweep that has just started has written its experiment. Return early if `stopped` is true.
void wait_for_first_entry(const std::optional<std::filesystem::path>& yard,
                          const std::function<bool()>& stopped);

// The key of the run that `text` names: "last" or a unique prefix of its key. UserError if there is none.
std::string run_named(const db::Database& database, const std::string& text);

}  // namespace trainyard::tools
