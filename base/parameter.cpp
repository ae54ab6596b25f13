#include "base/parameter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace trainyard {

namespace {

// "1e-04" → "1e-4", "1e+20" → "1e20".
std::string without_exponent_padding(std::string text) {
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  const bool negative = text[e + 1] == '-';
  const std::size_t digits = text.find_first_not_of("+-0", e + 1);
  return text.substr(0, e) + (negative ? "e-" : "e") + text.substr(digits);
}

// Shortest exact form: 1, 0.05, 1e-4.
std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return without_exponent_padding(std::string(buffer.data(), end));
}

std::string element_text(std::int64_t element) {
  return std::to_string(element);
}

// A TOML float needs a point or an exponent.
std::string element_text(double element) {
  const std::string text = number_text(element);
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

// JSON escapes texts as TOML does.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class Element>
std::string list_text(const std::vector<Element>& elements) {
  std::string text = "[";
  for (const Element element : elements) text += (text.size() > 1 ? ", " : "") + element_text(element);
  return text + "]";
}

// The bound of an integer is printed as an integer: 1000000, not 1e6.
std::string bound_text(const Parameter& parameter, double bound) {
  const bool integers = parameter.type == ValueType::integer || parameter.type == ValueType::integers;
  constexpr double exact = 0x1p53;
  if (!integers || std::abs(bound) > exact || bound != std::floor(bound)) return number_text(bound);
  return std::to_string(static_cast<std::int64_t>(bound));
}

// " >= 1", " > 0", " in [0, 1)"; empty if there are no bounds.
std::string bounds_text(const Parameter& parameter) {
  const auto& low = parameter.minimum;
  const auto& high = parameter.maximum;
  if (low && high) {
    return fmt::format(" in {}{}, {}{}", low->included ? "[" : "(", bound_text(parameter, low->value),
                       bound_text(parameter, high->value), high->included ? "]" : ")");
  }
  if (low) return (low->included ? " >= " : " > ") + bound_text(parameter, low->value);
  if (high) return (high->included ? " <= " : " < ") + bound_text(parameter, high->value);
  return "";
}

// "integers", "2 integers", "at most 16 integers", …
std::string elements_text(const Parameter& parameter) {
  const std::string noun = parameter.type == ValueType::integers ? "integer" : "number";
  const std::size_t low = parameter.minimum_length.value_or(0);
  const auto& high = parameter.maximum_length;
  if (low == 0 && !high) return noun + "s";
  const std::size_t last = high ? *high : low;
  const std::string text = !high          ? "at least "
                           : low == 0     ? "at most "
                           : low != *high ? fmt::format("{} to ", low)
                                          : "";
  return fmt::format("{}{} {}{}", text, last, noun, last == 1 ? "" : "s");
}

std::string choices_text(const std::vector<std::string>& choices) {
  if (choices.empty()) return "a text";
  return (choices.size() == 1 ? "" : "one of ") + joined(choices, quoted);
}

template <class Number>
bool in_bounds(const Parameter& parameter, Number number) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) return false;
  }
  const auto exact = static_cast<long double>(number);
  const auto& low = parameter.minimum;
  const auto& high = parameter.maximum;
  if (low && (low->included ? exact < low->value : exact <= low->value)) return false;
  return !(high && (high->included ? exact > high->value : exact >= high->value));
}

template <class Element>
bool list_fits(const Parameter& parameter, const std::vector<Element>& list) {
  if (parameter.minimum_length && list.size() < *parameter.minimum_length) return false;
  if (parameter.maximum_length && list.size() > *parameter.maximum_length) return false;
  return std::ranges::all_of(list, [&](Element element) { return in_bounds(parameter, element); });
}

// An integer for a number becomes one, and so do the elements of a list. An empty list has no type of its own.
Value converted(const Value& value, ValueType type) {
  if (const auto* integer = std::get_if<std::int64_t>(&value); integer && type == ValueType::number)
    return static_cast<double>(*integer);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value); list && type == ValueType::numbers)
    return std::vector<double>(list->begin(), list->end());
  if (value == Value(std::vector<double>()) && type == ValueType::integers)
    return std::vector<std::int64_t>();
  return value;
}

// The value in the type of the parameter. Empty if it is not allowed.
std::optional<Value> fitted(const Parameter& parameter, const Value& value) {
  const auto is_allowed = [&](const auto& held) {
    using Held = std::decay_t<decltype(held)>;
    const auto& choices = parameter.choices;
    if constexpr (std::is_same_v<Held, bool>)
      return true;
    else if constexpr (std::is_same_v<Held, std::string>)
      return choices.empty() || std::ranges::find(choices, held) != choices.end();
    else if constexpr (std::is_arithmetic_v<Held>)
      return in_bounds(parameter, held);
    else
      return list_fits(parameter, held);
  };
  Value result = converted(value, parameter.type);
  const bool has_type = result.index() == static_cast<std::size_t>(parameter.type);
  return has_type && std::visit(is_allowed, result) ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace

std::string allowed_text(const Parameter& parameter) {
  switch (parameter.type) {
    case ValueType::boolean:
      return "true or false";
    case ValueType::integer:
      return "an integer" + bounds_text(parameter);
    case ValueType::number:
      return "a number" + bounds_text(parameter);
    case ValueType::text:
      return choices_text(parameter.choices);
    case ValueType::integers:
    case ValueType::numbers:
      return fmt::format("a list of {}{}", elements_text(parameter), bounds_text(parameter));
  }
  throw InternalError("parameter " + parameter.name + " has no type");
}

std::string default_text(const Parameter& parameter) {
  return parameter.fallback ? to_text(*parameter.fallback) : parameter.fallback_text;
}

std::optional<std::string> problem_with(const Parameter& parameter, const Value& value) {
  if (fitted(parameter, value)) return std::nullopt;
  return fmt::format("must be {}, but is {}", allowed_text(parameter), to_text(value));
}

Value coerced(const Parameter& parameter, const Value& value) {
  if (const auto problem = problem_with(parameter, value))
    throw InternalError(fmt::format("{} {}", parameter.name, *problem));
  return *fitted(parameter, value);
}

std::string to_text(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) {
          return held ? "true" : "false";
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return quoted(held);
        } else if constexpr (std::is_arithmetic_v<Held>) {
          return element_text(held);
        } else {
          return list_text(held);
        }
      },
      value);
}

}  // namespace trainyard
