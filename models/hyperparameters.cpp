#include "models/hyperparameters.h"

#include <utility>

#include "base/error.h"

namespace trainyard::models {

namespace {

constexpr double largest_size = 65536;

template <class T>
const T& value(const Hyperparameters& values, const std::string& name, const char* type) {
  const auto found = values.find(name);
  if (found == values.end() || !std::holds_alternative<T>(found->second)) {
    throw InternalError("hyper-parameter " + name + " is not " + type);
  }
  return std::get<T>(found->second);
}

Parameter row(const std::string& name, ValueType type, Value fallback, const std::string& meaning) {
  return {.name = name,
          .type = type,
          .fallback = std::move(fallback),
          .fallback_text = "",
          .minimum = {},
          .maximum = {},
          .minimum_length = {},
          .maximum_length = {},
          .choices = {},
          .meaning = meaning};
}

}  // namespace

std::int64_t integer(const Hyperparameters& values, const std::string& name) {
  return value<std::int64_t>(values, name, "an integer");
}

double number(const Hyperparameters& values, const std::string& name) {
  return value<double>(values, name, "a number");
}

const std::string& text(const Hyperparameters& values, const std::string& name) {
  return value<std::string>(values, name, "a text");
}

const std::vector<std::int64_t>& integers(const Hyperparameters& values, const std::string& name) {
  return value<std::vector<std::int64_t>>(values, name, "a list of integers");
}

Parameter size_parameter(const std::string& name, std::int64_t fallback, const std::string& meaning) {
  Parameter parameter = row(name, ValueType::integer, fallback, meaning);
  parameter.minimum = Bound{1};
  parameter.maximum = Bound{largest_size};
  return parameter;
}

Parameter sizes_parameter(const std::string& name, std::vector<std::int64_t> fallback, std::size_t at_least,
                          std::size_t at_most, const std::string& meaning) {
  Parameter parameter = row(name, ValueType::integers, std::move(fallback), meaning);
  parameter.minimum = Bound{1};
  parameter.maximum = Bound{largest_size};
  parameter.minimum_length = at_least;
  parameter.maximum_length = at_most;
  return parameter;
}

Parameter choice_parameter(const std::string& name, const std::vector<std::string>& choices,
                           const std::string& meaning) {
  Parameter parameter = row(name, ValueType::text, choices.front(), meaning);
  parameter.choices = choices;
  return parameter;
}

Parameter dropout_parameter(double fallback, const std::string& meaning) {
  Parameter parameter = row("dropout", ValueType::number, fallback, meaning);
  parameter.minimum = Bound{0};
  parameter.maximum = Bound{1, false};
  return parameter;
}

}  // namespace trainyard::models
