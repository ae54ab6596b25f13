// "1 core", "2 cores": how many there are of what a message speaks of.
#pragma once

#include <cstddef>
#include <string>

namespace trainyard::orchestrator {

inline std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace trainyard::orchestrator
