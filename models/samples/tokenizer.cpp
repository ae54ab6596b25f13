#include "models/samples/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <utf8proc.h>

#include "base/error.h"

namespace trainyard::models {

namespace {

enum class Class { word, space, other };

struct Character {
  utf8proc_int32_t code = 0;
  std::size_t bytes = 1;  // 0 where the text is not UTF-8
};

Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  Character found;
  const auto bytes = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                      static_cast<utf8proc_ssize_t>(text.size() - at), &found.code);
  found.bytes = bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  return found;
}

Class class_by_category(utf8proc_int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Class::word;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
      return Class::space;
    default:
      return Class::other;
  }
}

Class class_of(utf8proc_int32_t code) {
  static const auto ascii = [] {
    std::array<Class, 128> classes{};
    for (std::size_t i = 0; i < classes.size(); ++i)
      classes[i] = class_by_category(static_cast<utf8proc_int32_t>(i));
    return classes;
  }();
  return code < 128 ? ascii[static_cast<std::size_t>(code)] : class_by_category(code);
}

void append_lower(std::string& token, utf8proc_int32_t code) {
  if (code < 128) {
    token += static_cast<char>(code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code);
    return;
  }
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(utf8proc_tolower(code), bytes.data());
  token.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count));
}

// The length of "<br>", "<br/>" or "<br />" at the beginning of `text`, 0 where there is none.
std::size_t line_break(std::string_view text) {
  for (const std::string_view tag : {"<br />", "<br/>", "<br>"})
    if (text.starts_with(tag)) return tag.size();
  return 0;
}

}  // namespace

std::optional<std::size_t> first_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_at(text, at).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

void for_each_token(std::string_view text, const UseToken& use) {
  std::string word;
  const auto end_word = [&] {
    const bool go_on = word.empty() || use(word);
    word.clear();
    return go_on;
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0) throw InternalError("a text is not UTF-8");
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

std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  for_each_token(text, [&](std::string_view token) {
    tokens.emplace_back(token);
    return true;
  });
  return tokens;
}

void count_token(TokenCounts& counts, std::string_view token) {
  const auto known = counts.find(token);
  if (known != counts.end()) {
    ++known->second;
  } else {
    counts.emplace(token, 1);
  }
}

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  numbers_.reserve(words_.size());
  for (std::size_t i = 0; i < words_.size(); ++i)
    numbers_.emplace(words_[i], static_cast<std::int32_t>(special_tokens + static_cast<std::int64_t>(i)));
}

std::int32_t Vocabulary::number(std::string_view token) const {
  const auto known = numbers_.find(token);
  return known == numbers_.end() ? unknown_token : known->second;
}

std::string_view Vocabulary::text(std::int32_t number) const {
  static constexpr std::array<std::string_view, special_tokens> special{"<pad>", "<unk>", "<bos>", "<eos>"};
  if (number < 0 || number >= size()) throw InternalError("no token has number " + std::to_string(number));
  const auto at = static_cast<std::size_t>(number);
  return at < special.size() ? special[at] : std::string_view(words_[at - special.size()]);
}

std::vector<std::string> frequent_words(const TokenCounts& counts, std::int64_t min_frequency,
                                        std::int64_t max_size) {
  using Counted = std::pair<std::string_view, std::int64_t>;
  std::vector<Counted> kept;
  for (const auto& [word, count] : counts)
    if (count >= min_frequency) kept.emplace_back(word, count);
  std::sort(kept.begin(), kept.end(), [](const Counted& a, const Counted& b) {
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
