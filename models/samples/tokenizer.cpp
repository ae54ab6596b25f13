#include "models/samples/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <utf8proc.h>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::models {

namespace {

enum class Class { word, space, other };

Class class_by_category(std::uint32_t code) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) return Class::word;
  if (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_CF) return Class::space;
  return Class::other;
}

Class class_of(std::uint32_t code) {
  static const auto ascii = [] {
    std::array<Class, 128> classes{};
    for (std::uint32_t i = 0; i < classes.size(); ++i) classes[i] = class_by_category(i);
    return classes;
  }();
  return code < 128 ? ascii[code] : class_by_category(code);
}

void append_lower(std::string& token, std::uint32_t code) {
  if (code < 128)
    token += static_cast<char>(code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code);
  else
    token += utf8_of(static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

// The length of "<br>", "<br/>" or "<br />" at the beginning of `text`; 0 if there is none.
std::size_t line_break(std::string_view text) {
  for (const std::string_view tag : {"<br />", "<br/>", "<br>"})
    if (text.starts_with(tag)) return tag.size();
  return 0;
}

}  // namespace

std::string utf8_of(std::uint32_t code) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count)};
}

void for_each_token(std::string_view text, const UseToken& use) {
  std::string word;
  const auto end_word = [&] {
    const bool wants_more = word.empty() || use(word);
    word.clear();
    return wants_more;
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character character = first_character(text.substr(at));
    if (!character.valid) throw InternalError("the text to split into tokens is not UTF-8");
    const Class kind = class_of(character.code);
    std::size_t bytes = character.bytes;
    if (kind == Class::word) {
      append_lower(word, character.code);
    } else {
      if (!end_word()) return;
      const std::size_t tag = character.code == '<' ? line_break(text.substr(at)) : 0;
      if (tag > 0) {
        bytes = tag;
      } else if (kind == Class::other && !use(text.substr(at, bytes))) {
        return;
      }
    }
    at += bytes;
  }
  end_word();
}

Vocabulary::Vocabulary(const std::vector<std::string>& words) {
  numbers_.reserve(words.size());
  auto number = static_cast<std::int32_t>(special_tokens);
  for (const std::string& word : words) numbers_.emplace(word, number++);
}

std::int32_t Vocabulary::number(std::string_view token) const {
  const auto known = numbers_.find(token);
  return known == numbers_.end() ? unknown_token : known->second;
}

std::vector<std::string> frequent_words(const TokenCounts& counts, std::int64_t min_frequency,
                                        std::int64_t max_size) {
  using Counted = std::pair<std::string_view, std::int64_t>;
  std::vector<Counted> kept;
  for (const auto& [word, count] : counts)
    if (count >= min_frequency) kept.emplace_back(word, count);
  std::ranges::sort(kept, [](const Counted& a, const Counted& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(0, max_size - special_tokens));
  if (kept.size() > room) kept.resize(room);
  std::vector<std::string> words;
  words.reserve(kept.size());
  for (const Counted& word : kept) words.emplace_back(word.first);
  return words;
}

}  // namespace trainyard::models
