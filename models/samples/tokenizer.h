// From a text to numbers: tokens, and the vocabulary that numbers them.
//
// Text as tokens. A run of letters, marks and digits is one token, in lower case; every other visible
// character is a token of its own; white space and HTML's line break "<br />" only separate. What is a letter
// and what its lower case says Unicode (utf8proc), so «Größe, Übung» is "größe" "," "übung".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace trainyard::models {

// Changes with every change of the tokens: it stands in the fingerprint of every text.
inline constexpr int tokens_version = 1;

// The first byte of `text` that is not UTF-8; nothing where all of it is.
std::optional<std::size_t> first_not_utf8(std::string_view text);

// Calls `use` with each token in order; the view lives until `use` returns. `use` says whether to go on.
// InternalError where `text` is not UTF-8: readers have checked it.
using UseToken = std::function<bool(std::string_view)>;
void for_each_token(std::string_view text, const UseToken& use);

std::vector<std::string> tokens_of(std::string_view text);

// Which number stands for which token of a text. A vocabulary is made of the training part only, and is a
// pure function of its counts: the most frequent tokens, of equally frequent ones the smaller by bytes first.

// The same in every vocabulary.
inline constexpr std::int32_t pad_token = 0;      // "<pad>": fills short sequences of a batch
inline constexpr std::int32_t unknown_token = 1;  // "<unk>": a word that is not in the vocabulary
inline constexpr std::int32_t begin_token = 2;    // "<bos>": before the first word of a translation
inline constexpr std::int32_t end_token = 3;      // "<eos>": after the last word
inline constexpr std::int64_t special_tokens = 4;

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

using TokenCounts = std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>>;
void count_token(TokenCounts& counts, std::string_view token);

class Vocabulary {
 public:
  // `words` get the numbers from `special_tokens` on.
  explicit Vocabulary(std::vector<std::string> words);

  std::int64_t size() const { return special_tokens + static_cast<std::int64_t>(words_.size()); }
  std::int32_t number(std::string_view token) const;                // `unknown_token` where it is not in it
  std::string_view text(std::int32_t number) const;                 // "<pad>" …; InternalError outside
  const std::vector<std::string>& words() const { return words_; }  // without the special ones

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> numbers_;
};

// The words counted at least `min_frequency` times, as many as make `max_size` with the special tokens.
std::vector<std::string> frequent_words(const TokenCounts& counts, std::int64_t min_frequency,
                                        std::int64_t max_size);

}  // namespace trainyard::models
