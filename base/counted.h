// "1 core", "2 cores": how many there are of what a message speaks of.
#pragma once

#include <array>
#include <concepts>
#include <string>

namespace trainyard::models {

template <std::integral Count>
std::string counted(Count count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "two", "twelve"; larger numbers in digits.
template <std::integral Count>
std::string in_words(Count count) {
  constexpr std::array words{"no",    "one",   "two",  "three", "four",   "five",  "six",
                             "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  const auto index = static_cast<std::size_t>(count);
  return count >= 0 && index < words.size() ? words[index] : std::to_string(count);
}

// "one rank", "four ranks".
template <std::integral Count>
std::string counted_in_words(Count count, const std::string& noun) {
  return in_words(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace trainyard::models
