// "1 core", "2 cores": how many there are of what a message speaks of.
#pragma once

#include <concepts>
#include <string>

namespace trainyard::models {

template <std::integral Count>
std::string counted(Count count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace trainyard::models
