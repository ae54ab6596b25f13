// BLEU (Papineni et al. 2002) of a corpus against one reference a sentence, as sums that add up over
// sentences and ranks. The score is derived from them: BP · exp(Σ ln(matched_n / candidates_n) / 4), with the
// brevity penalty BP = min(1, exp(1 − reference length / candidate length)).
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace trainyard::runner {

struct BleuSums {
  std::array<std::int64_t, 4> matched{};  // n-grams of candidates that their reference has too, n = 1 … 4,
                                          // each at most as often as there
  std::array<std::int64_t, 4> candidates{};  // n-grams of candidates
  std::int64_t candidate_length = 0;         // tokens
  std::int64_t reference_length = 0;         // tokens

  // Both without <bos>, <eos> and padding. <unk> matches nothing: it is no word that a reader could use.
  void add(std::span<const std::int64_t> candidate, std::span<const std::int64_t> reference);
};

}  // namespace trainyard::runner
