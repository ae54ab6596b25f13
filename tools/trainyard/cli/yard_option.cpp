#include <CLI/CLI.hpp>

#include "tools/trainyard/cli/command.h"

namespace trainyard::tools {

void add_yard_option(CLI::App& command, std::optional<std::filesystem::path>& yard) {
  refuse_empty(
      command.add_option("--yard", yard, "folder of results (default: $TRAINYARD_HOME, else ./yard)")
          ->type_name("DIR"));
}

CLI::Option* refuse_empty(CLI::Option* option) {
  const auto problem = [](const std::string& text) {
    return std::string(text.empty() ? "is empty; name a path, or leave it out" : "");
  };
  return option->check(CLI::Validator(problem, ""));
}

}  // namespace trainyard::tools
