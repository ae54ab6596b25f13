#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <utf8proc.h>

namespace trainyard {

namespace {

// The bytes of a character, by its first byte. 0 if no character begins with that byte.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

struct Range {
  std::uint32_t first, last;
};
// Control characters, line and paragraph separators, and marks that change the direction of writing.
constexpr std::array<Range, 5> hidden{
    {{0x00, 0x1F}, {0x7F, 0x9F}, {0x2028, 0x2029}, {0x202A, 0x202E}, {0x2066, 0x2069}}};

bool is_hidden(std::uint32_t code) {
  return std::ranges::any_of(hidden,
                             [&](const Range& range) { return code >= range.first && code <= range.last; });
}

// A character that is escaped counts as one column: a long text of such characters never counts as empty.
std::size_t columns_of(const Character& character) {
  if (!character.valid || is_hidden(character.code)) return 1;
  if (character.bytes == 1) return 1;
  return static_cast<std::size_t>(utf8proc_charwidth(static_cast<utf8proc_int32_t>(character.code)));
}

std::string escaped(const Character& character) {
  return character.valid ? fmt::format("\\u{:04x}", character.code)
                         : fmt::format("\\x{:02x}", character.code);
}

bool is_plain(char c) {
  return (c >= ' ' && c <= '~') || c == '\n' || c == '\t';
}

// The bytes of a colour at the beginning of `text`: "\033[", digits and semicolons, "m". 0 if there is no
// colour.
std::size_t colour_at(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const auto end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::string printed(std::string_view text, bool as_log) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t kept = !as_log ? 0 : text.front() == '\r' ? 1 : colour_at(text);
    result += text.substr(0, kept);
    text.remove_prefix(kept);
    if (kept > 0) continue;
    const auto begin = text.begin();
    const auto plain = std::find_if_not(begin, text.end(), is_plain);
    result.append(begin, plain);
    text.remove_prefix(static_cast<std::size_t>(plain - begin));
    if (text.empty() || plain != begin) continue;
    const Character character = first_character(text);
    const bool stays = character.valid && !is_hidden(character.code);
    result += stays ? std::string(text.substr(0, character.bytes)) : escaped(character);
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace

Character decoded_character(std::string_view text) {
  utf8proc_int32_t code = 0;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &code);
  if (bytes < 1) return {static_cast<unsigned char>(text.front()), 1, false};
  return {static_cast<std::uint32_t>(code), static_cast<std::size_t>(bytes), true};
}

std::string printable(std::string_view text) {
  return printed(text, false);
}

std::string printable_log(std::string_view text) {
  return printed(text, true);
}

std::string printable_line(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) result += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
  return result;
}

std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t colour = colour_at(text);
    const Character character = first_character(text);
    if (colour == 0) count += columns_of(character);
    text.remove_prefix(colour > 0 ? colour : character.bytes);
  }
  return count;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string shortened(std::string_view text, std::size_t width) {
  if (columns(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::size_t end = 0;
  Character next = first_character(text);
  for (std::size_t used = columns_of(next); used < width; used += columns_of(next)) {
    end += next.bytes;
    next = first_character(text.substr(end));
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t used = columns(text);
  return text + std::string(width > used ? width - used : 0, ' ');
}

std::string padded_left(const std::string& text, std::size_t width) {
  const std::size_t used = columns(text);
  return std::string(width > used ? width - used : 0, ' ') + text;
}

std::string clock_text(double seconds) {
  const auto total = static_cast<long>(std::lround(std::max(0.0, seconds)));
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

std::string duration_text(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto total = static_cast<long>(std::lround(seconds));
  if (total < 3600) return fmt::format("{} min {} s", total / 60, total % 60);
  return fmt::format("{} h {} min", total / 3600, total / 60 % 60);
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

std::vector<std::string> nonempty_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::optional<std::size_t> first_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    if (!character.valid) return at;
    at += character.bytes;
  }
  return std::nullopt;
}

bool is_utf8(std::string_view text) {
  return !first_not_utf8(text);
}

std::size_t incomplete_end(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    return length_of(byte) > back ? back : 0;
  }
  return 0;
}

}  // namespace trainyard
