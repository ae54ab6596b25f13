// The keys of a run: one row a key that `[defaults]`, `[model.*]`, `[strategy.*]` and `[matrix]` may set,
// beside the model's own hyper-parameters. `trainyard list keys` prints this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/parameter.h"

namespace trainyard::experiments {

enum class KeyPlace { anywhere, strategy };  // strategy: only in [strategy.*] and as a matrix axis

struct Key {
  Parameter parameter;
  KeyPlace place = KeyPlace::anywhere;
  std::string other_form = "";  // what is allowed beside the parameter's own values; see key_lookup.h
};

std::span<const Key> keys();
std::string allowed_text(const Key& key);  // both forms

// What a strategy is made of. A range of 1 … 1 means that the kind has no such thing.
struct StrategyKind {
  struct Range {
    std::int64_t fallback = 1, minimum = 1, maximum = 1;
    bool any() const { return maximum > 1; }
    bool has(std::int64_t number) const { return number >= minimum && number <= maximum; }
  };
  std::string name;   // "single", "ddp"
  std::string about;  // one line
  Range replicas;
  Range stages;
  Range micro_batches;
  std::string schedule;  // the default of more than one micro-batch; empty where there is never more
};

std::span<const StrategyKind> strategy_kinds();
// A program of the user's, see experiments/config/config_strategies.h: the kind of a [strategy.*] that has a
// command.
const StrategyKind& foreign_kind();
std::vector<std::string> strategy_names();

}  // namespace trainyard::experiments
