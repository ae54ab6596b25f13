#include "models/samples/vocabulary.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace trainyard::models {

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
