#include <CLI/CLI.hpp>

#include "tools/trainyard/command.h"

namespace trainyard::tools {

void add_yard_option(CLI::App& command, std::optional<std::filesystem::path>& yard) {
  command.add_option("--yard", yard, "folder of results (default: $TRAINYARD_HOME, else ./yard)")
      ->type_name("DIR");
}

}  // namespace trainyard::tools
