// The keys of [machine], one row per key. The file reader, its errors and `trainyard list keys` use them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/config/toml_tree.h"
#include "experiments/run/machine.h"

namespace trainyard::experiments {

struct MachineKey {
  std::string name;
  std::string allowed;                 // "an integer >= 1"
  std::string fallback;                // the default as text, or empty
  std::vector<std::string> launchers;  // launchers that have the key; empty: all
  std::string meaning;
  // Stores the value in the machine. False if it is not allowed.
  std::function<bool(const TomlNode& value, Machine& machine)> read;
};
std::span<const MachineKey> machine_keys();

}  // namespace trainyard::experiments
