// Numbers in texts of others: files of the kernel, environment variables, names of folders.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace trainyard {

// The whole of `text` as a number. Empty if it is not one, or if it does not fit. `base`: of an integer, 10 if it is left out.
template <typename Number, std::same_as<int>... Base>
std::optional<Number> parse_number(std::string_view text, Base... base) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, base...);
  return error == std::errc() && end == last ? std::optional(number) : std::nullopt;
}

}  // namespace trainyard
