// Tokenizer and vocabulary: from a text to token numbers.
//
// Tokens:
// - A sequence of letters, marks and digits is one token, in lower case.
// - Every other visible character is a token of its own.
// - White space and the HTML line break "<br />" separate tokens.
// Unicode (utf8proc) defines letters and lower case: "Größe, Übung" becomes "größe" "," "übung".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trainyard::models {

// Part of the fingerprint of every text. Increase it if tokens change.
inline constexpr int tokens_version = 1;

std::string utf8_of(std::uint32_t code);  // of a character

// Call `use` with each token in order, until it returns false. The view is valid until `use` returns.
// InternalError if `text` is not UTF-8: the readers of text files check that.
using UseToken = std::function<bool(std::string_view)>;
void for_each_token(std::string_view text, const UseToken& use);

// Special tokens. They have the same numbers in every vocabulary.
inline constexpr std::int32_t pad_token = 0;      // "<pad>": fills the short sequences of a batch
inline constexpr std::int32_t unknown_token = 1;  // "<unk>": a word that is not in the vocabulary
inline constexpr std::int32_t begin_token = 2;    // "<bos>": before the first word of a translation
inline constexpr std::int32_t end_token = 3;      // "<eos>": after the last word
inline constexpr std::int64_t special_tokens = 4;

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

using TokenCounts = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;

// The numbers of tokens. A vocabulary is built from the training part only.
class Vocabulary {
 public:
  // The first of `words` gets the number `special_tokens`.
  explicit Vocabulary(const std::vector<std::string>& words);
  std::int32_t number(std::string_view token) const;  // `unknown_token` for any other token

 private:
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> numbers_;
};

// The words of a vocabulary with at most `max_size` tokens, special tokens included.
// - Words with a count below `min_frequency` are left out.
// - The most frequent word is first. Equally frequent words are in the order of their bytes.
std::vector<std::string> frequent_words(const TokenCounts& counts, std::int64_t min_frequency,
                                        std::int64_t max_size);

}  // namespace trainyard::models
