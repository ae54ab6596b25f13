// What all subcommands share: their exit codes, and the option that names the yard.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

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

}  // namespace trainyard::tools
