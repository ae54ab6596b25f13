// Description of a value that an experiment file may set: name, type, range, default.
// Each hyper-parameter of a model (`models/catalogue.h`) and each key of a run (`experiments/run/keys.h`) has
// one. Checks, error messages and `trainyard list` all use it.
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
  std::optional<Value> fallback = {};  // the default; empty: see `fallback_text`
  std::string fallback_text = {};      // the default in words, if it depends on other keys
  std::optional<Bound> minimum = {};   // of a number, or of each element of a list
  std::optional<Bound> maximum = {};
  std::optional<std::size_t> minimum_length = {};  // number of elements of a list
  std::optional<std::size_t> maximum_length = {};
  std::vector<std::string> choices = {};  // allowed texts; empty: any text
  std::string meaning;                    // one line, with the unit
};

// The allowed values in words: `an integer >= 1`, `a number in [0, 1)`, `one of "sgd", "adam"`,
// `a list of integers >= 1`, `a list of 2 integers in [1, 64]`, `a list of at most 16 integers`.
std::string allowed_text(const Parameter& parameter);

// The default in words: the value, or `fallback_text`.
std::string default_text(const Parameter& parameter);

// What is wrong with `value`: "must be an integer >= 1, but is 0". Empty if it is allowed.
// - NaN and infinities are never allowed.
// - An integer is allowed for a number (see `coerced`).
std::optional<std::string> problem_with(const Parameter& parameter, const Value& value);

// `value` converted to the type of the parameter.
// - An integer is converted if the parameter is a number, and so are the elements of a list.
// - An empty list is allowed for both list types, because TOML gives it no type.
// - InternalError if `problem_with` reports a problem.
Value coerced(const Parameter& parameter, const Value& value);

// The value as TOML: true, 3, 0.05, "sgd", [250, 100]. A number has the shortest form that TOML reads back as
// the same float: "1.0", "0.05", "1e-4".
std::string to_text(const Value& value);

}  // namespace trainyard
