// Text for people: escaping for a terminal, width in columns, counts and lists in words, quoting for a shell.
//
// Names, errors and program output can contain anything. After escaping, nothing in them can move the cursor,
// change colours or change the direction of writing.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

// Control characters are escaped as in JSON (\u001b), bytes that are not UTF-8 as \xff. Newlines and tabs
// stay.
std::string printable(std::string_view text);

// `printable` on one line: a newline becomes \n, a tab becomes \t.
std::string printable_line(std::string_view text);

// `printable` for the log of a program. Carriage returns and colours ("\033[1;31m") stay, because progress
// bars need them.
std::string printable_log(std::string_view text);

// Columns that one line takes on a terminal.
// - Two for a wide character (日, 😀), none for a combining character.
// - None for a colour ("\033[1;31m"), one for a byte that is not UTF-8.
std::size_t columns(std::string_view text);

// The first `width` columns of a line without colours. If something is cut off, the last column is an
// ellipsis. A character is never separated from the combining characters after it.
std::string shortened(std::string_view text, std::size_t width);

// The text without white space (" \t\r\n") at its begin and end.
std::string_view trimmed(std::string_view text);

// The text with spaces after it (`padded`) or before it (`padded_left`), up to `width` columns.
std::string padded(const std::string& text, std::size_t width);
std::string padded_left(const std::string& text, std::size_t width);

std::string clock_text(double seconds);     // "0:03", "12:34", "1:02:03"
std::string duration_text(double seconds);  // "4.2 s", "3 min 20 s", "2 h 5 min"

// The first line. LibTorch's error messages have a stack trace below it.
std::string first_line(std::string_view text);

// The lines of a text that have any characters.
std::vector<std::string> nonempty_lines(const std::string& text);

struct Character {
  std::uint32_t code = 0;  // of the byte, if it is not valid
  std::size_t bytes = 1;
  bool valid = true;  // UTF-8 as RFC 3629 has it: shortest form, no surrogates, at most U+10FFFF
};

// The first character of `text`, which must not be empty.
Character decoded_character(std::string_view text);
inline Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  return first < 0x80 ? Character{first} : decoded_character(text);  // ASCII without a call: texts are long
}

// The index of the first byte that is not UTF-8. Empty if all of `text` is UTF-8.
std::optional<std::size_t> first_not_utf8(std::string_view text);
bool is_utf8(std::string_view text);

// The number of bytes at the end of `text` that are an incomplete character.
std::size_t incomplete_end(std::string_view text);

// "1 core", "2 cores".
template <std::integral Count>
std::string counted(Count count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "no" to "twelve". Larger numbers are in digits.
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

// "a, b, c". `text_of`, a member or a function, gives the text of a row. By default the row itself is the
// text.
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

// A text as one word of a shell command. Plain words need no quotes and stay as they are.
inline std::string shell_quoted(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

}  // namespace trainyard
