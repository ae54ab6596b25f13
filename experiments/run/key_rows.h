// Rows of the table of keys (experiments/run/keys.h): descriptions of numbers and texts, and the keys of strategies.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/parameter.h"
#include "experiments/run/keys.h"

namespace trainyard::experiments {

inline constexpr Bound from_zero{0, true};
inline constexpr Bound from_one{1, true};

// `fallback`: the default in words, if it depends on other keys. Without one it is that of a new `Run`.
inline Parameter number_row(const char* name, Bound minimum, std::optional<Bound> maximum,
                            const char* meaning, const char* fallback = "",
                            ValueType type = ValueType::number) {
  return {.name = name,
          .type = type,
          .fallback_text = fallback,
          .minimum = minimum,
          .maximum = maximum,
          .meaning = meaning};
}

inline Parameter integer_row(const char* name, Bound minimum, std::optional<Bound> maximum,
                             const char* meaning, const char* fallback = "") {
  return number_row(name, minimum, maximum, meaning, fallback, ValueType::integer);
}

inline Parameter text_row(const char* name, std::vector<std::string> choices, const char* meaning,
                          const char* fallback = "") {
  return {.name = name,
          .type = ValueType::text,
          .fallback_text = fallback,
          .choices = std::move(choices),
          .meaning = meaning};
}

std::vector<Key> strategy_keys();

}  // namespace trainyard::experiments
