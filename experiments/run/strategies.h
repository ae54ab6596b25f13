// The kinds of strategies, one row per kind. The row defines the allowed keys, the mesh of the runs, and how
// reports treat them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::experiments {

// A kind of strategy. A range of one number means that the kind does not have this dimension.
struct StrategyKind {
  struct Range {
    std::int64_t fallback = 1, minimum = 1, maximum = 1;
    bool any() const { return maximum > 1; }
    bool has(std::int64_t number) const { return number >= minimum && number <= maximum; }
  };
  std::string name;   // "single", "ddp"
  std::string about;  // one line
  // What an arm says of its training. "same": what one device computes, up to the order of sums. "recorded": another
  // algorithm, which depends on which rank is faster. "none": separate models, without a verdict.
  std::string claim = "same";
  Range replicas = {};
  Range stages = {};
  Range micro_batches = {};
  Range servers = {.fallback = 0, .minimum = 0, .maximum = 0};
  // What replicas keep in slices: 1 state of the optimizer, 2 also gradients, 3 also parameters.
  Range sharding = {};
  Range tensor = {};
  std::string schedule = "";  // default for several micro-batches; empty if there is always one
  // The ranks train at the same time without a connection: replicas share neither batch nor gradients. Such
  // runs get no verdict and keep no weights.
  bool independent = false;
  bool in_step = false;  // independent ranks that wait for one another before each step
  bool elastic = false;  // an attempt may have fewer replicas: `min_replicas`
};

std::span<const StrategyKind> strategy_kinds();
std::vector<std::string> strategy_names();
const StrategyKind* strategy_or_null(std::string_view name);
const StrategyKind& find_strategy(std::string_view name);  // UserError with the known names if it is unknown
bool is_independent(std::string_view name);                // false for an unknown kind

// The kind of a [strategy.*] with a command: a program of the user (experiments/config/config_strategies.h).
const StrategyKind& foreign_kind();

}  // namespace trainyard::experiments
