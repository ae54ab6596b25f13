// A named, typed, bounded value that an experiment file may set: a model's hyper-parameter or a key of a run.
// The catalogue and `experiments/keys` are tables of these; checking, `trainyard list` and error texts are
// all made from the same row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace trainyard {

using Value =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>>;

enum class ValueType { boolean, integer, number, text, integers, numbers };

struct Bound {
  double value = 0;
  bool included = true;
};

struct Parameter {
  std::string name;
  ValueType type = ValueType::integer;
  std::optional<Value> fallback;  // used where the file says nothing; empty: see `fallback_text`
  std::string fallback_text;      // the default in words, where it depends on other keys
  std::optional<Bound> minimum;   // for numbers, and each element of a list
  std::optional<Bound> maximum;
  std::optional<std::size_t> minimum_length;  // for lists: how many elements
  std::optional<std::size_t> maximum_length;
  std::vector<std::string> choices;  // for texts: all that is allowed; empty = anything
  std::string meaning;               // one line, with the unit
};

// "an integer >= 1", "a number in [0, 1)", "one of \"sgd\", \"adam\"", "a list of integers >= 1",
// "a list of 2 integers in [1, 64]", "a list of at most 16 integers".
std::string allowed_text(const Parameter& parameter);

// The default in words: the value, or `fallback_text`.
std::string default_text(const Parameter& parameter);

// What is wrong with `value` ("must be an integer >= 1, is 0"), or nothing. NaN and infinities are always
// wrong; an integer is accepted where a number is wanted (see `coerced`).
std::optional<std::string> problem_with(const Parameter& parameter, const Value& value);

// `value` in the parameter's own type: integers become numbers where numbers are wanted. The value must have
// passed `problem_with` (InternalError otherwise). An empty list has no type of its own: it passes for
// either.
Value coerced(const Parameter& parameter, const Value& value);

// As it would stand in TOML: true, 3, 0.05, "sgd", [250, 100]. Numbers in the shortest form that reads back
// as a number: "1.0", "0.05", "1e-4".
std::string to_text(const Value& value);

}  // namespace trainyard
