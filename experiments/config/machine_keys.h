// The keys of [machine], one row each: the reader of the file, its errors and `trainyard list keys` take them
// from here.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/config/toml_tree.h"
#include "experiments/run/machine.h"

namespace trainyard::experiments {

struct MachineKey {
  std::string name;
  std::string allowed;                 // "an integer >= 1"
  std::string fallback;                // as text; empty: none
  std::vector<std::string> launchers;  // those it is for; empty: all
  std::string meaning;
  // Puts the value into the machine; false if it is not allowed.
  bool (*read)(const TomlNode& value, Machine& machine);
};
std::span<const MachineKey> machine_keys();

}  // namespace trainyard::experiments
