// The strategies: one row per kind. What a file may say of it, the mesh of its runs, and how they are judged
// and shown follow from the row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::experiments {

// What a strategy is made of. A range of 1 … 1 means that the kind has no such thing.
struct StrategyKind {
  struct Range {
    std::int64_t fallback = 1, minimum = 1, maximum = 1;
    bool any() const { return maximum > 1; }
    bool has(std::int64_t number) const { return number >= minimum && number <= maximum; }
  };
  std::string name;   // "single", "ddp"
  std::string about;  // one line
  Range replicas = {};
  Range stages = {};
  Range micro_batches = {};
  std::string schedule = "";  // the default of more than one micro-batch; empty if there is never more
  // Each rank trains as a single one does, all at once: replicas share neither batch nor gradients. No
  // verdict judges such runs, and they keep no weights.
  bool independent = false;
};

std::span<const StrategyKind> strategy_kinds();
std::vector<std::string> strategy_names();
const StrategyKind* strategy_or_null(std::string_view name);
const StrategyKind& find_strategy(
    std::string_view name);                  // UserError for an unknown one, with those that exist
bool is_independent(std::string_view name);  // not of an unknown kind

// A program of the user's, see experiments/config/config_strategies.h: the kind of a [strategy.*] that has a
// command.
const StrategyKind& foreign_kind();

}  // namespace trainyard::experiments
