#include "models/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace trainyard::models {

namespace {

// One character, or a byte that begins none.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = true;
};

std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

// Of UTF-8 as RFC 3629 has it: no longer form than needed, no surrogates, nothing above U+10FFFF.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = length_of(byte(0));
  const Character none{byte(0), 1, false};
  if (length == 1) return {byte(0), 1, true};
  if (length == 0 || length > text.size()) return none;
  std::uint32_t code = byte(0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return none;
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  static constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool wrong = code < least.at(length) || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF;
  return wrong ? none : Character{code, length, true};
}

struct Range {
  std::uint32_t first, last;
};
// Controls, the ends of lines that are no newline, and what turns the direction of writing.
constexpr std::array<Range, 5> hidden{
    {{0x00, 0x1F}, {0x7F, 0x9F}, {0x2028, 0x2029}, {0x202A, 0x202E}, {0x2066, 0x2069}}};

bool is_hidden(std::uint32_t code) {
  return std::any_of(hidden.begin(), hidden.end(),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
}

std::string escaped(const Character& character) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), character.valid ? "\\u%04x" : "\\x%02x", character.code);
  return text.data();
}

bool needs_no_look(char c) {
  return (c >= ' ' && c <= '~') || c == '\n' || c == '\t';
}

// "\033[", digits and semicolons, "m" at the begin of `text`: how many bytes; 0: none.
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
    const auto plain = std::find_if_not(begin, text.end(), needs_no_look);
    result.append(begin, plain);
    text.remove_prefix(static_cast<std::size_t>(plain - begin));
    if (text.empty() || plain != begin) continue;
    const Character character = first_of(text);
    const bool stays = character.valid && !is_hidden(character.code);
    result += stays ? std::string(text.substr(0, character.bytes)) : escaped(character);
    text.remove_prefix(character.bytes);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return printed(text, false);
}

std::string printable_log(std::string_view text) {
  return printed(text, true);
}

std::string printable_line(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else
      result += c;
  }
  return result;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_of(text);
    if (!character.valid) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::size_t incomplete_end(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    return length_of(byte) > back ? back : 0;
  }
  return 0;
}

}  // namespace trainyard::models
