// Text for people: escaped for a terminal, its width there, counts and lists in words, and words of a shell
// command.
//
// Text of others (names, errors, what a program printed) as a terminal may have it: nothing in it moves the
// cursor, changes colours, or turns the direction of writing; and how many columns it takes there.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace trainyard {

// Control characters stand as in JSON, \u001b, and bytes that are no UTF-8 as \xff. A newline and a tab stay.
std::string printable(std::string_view text);

// And on one line: a newline stands as \n, a tab as \t.
std::string printable_line(std::string_view text);

// As `printable`, with what a program's progress bar needs: a return to the line's begin, and colours
// ("\033[1;31m").
std::string printable_log(std::string_view text);

// Columns of one line on a terminal: two for a wide character (日, 😀), none for a combining one and for
// colours
// ("\033[1;31m"), one for a byte that is no UTF-8.
std::size_t columns(std::string_view text);

// At most `width` columns of a line without colours; where something is cut off its last one is an ellipsis.
// No character is cut apart, nor from the combining ones that follow it.
std::string shortened(std::string_view text, std::size_t width);

// With spaces up to `width` columns, after the text or before it.
std::string padded(const std::string& text, std::size_t width);
std::string padded_left(const std::string& text, std::size_t width);

// What is said of an error in one line: LibTorch puts a stack trace below its own.
std::string first_line(std::string_view text);

bool is_utf8(std::string_view text);

// How many bytes at the end of `text` are the beginning of a character whose other bytes may still come.
std::size_t incomplete_end(std::string_view text);

// "1 core", "2 cores": how many there are of what a message speaks of.

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

// Names one behind the other, as errors list them.

// "a, b, c": of each row what `text_of`, a member or a function, says; the row itself where none is given.
template <typename Rows, typename Text = std::identity>
std::string joined(const Rows& rows, const Text& text_of = {}, std::string_view between = ", ") {
  std::string text;
  bool first = true;
  for (const auto& row : rows) {
    if (!first) text += between;
    first = false;
    text += std::invoke(text_of, row);
  }
  return text;
}

// A path or a value as one word of a shell's command, whatever is in it; plain words stay as they are.

inline std::string shell_quoted(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

}  // namespace trainyard
