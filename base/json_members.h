// Read values from JSON with range checks.
// A number that is not an integer, or that does not fit into the type (1e99), throws `json::exception`.
// nlohmann-json's own conversion leaves that case undefined.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

namespace trainyard::experiments {

template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;

template <WholeNumber T>
bool fits(const nlohmann::json& number) {
  if (number.is_number_unsigned()) return std::in_range<T>(number.get<std::uint64_t>());
  return number.is_number_integer() && std::in_range<T>(number.get<std::int64_t>());
}

template <class T>
void read(const nlohmann::json& from, T& to) {
  if constexpr (WholeNumber<T>) {
    if (!fits<T>(from))
      throw nlohmann::json::type_error::create(302, "not a whole number that fits: " + from.dump(), &from);
    from.get_to(to);
  } else if constexpr (is_list<T>) {
    to.clear();
    for (const auto& element : from.get_ref<const nlohmann::json::array_t&>())
      read(element, to.emplace_back());
  } else {
    from.get_to(to);
  }
}

template <class T>
T read_as(const nlohmann::json& from) {
  T value{};
  read(from, value);
  return value;
}

}  // namespace trainyard::experiments
