#include "runner/data/bleu.h"

#include <algorithm>
#include <map>
#include <vector>

#include "models/samples/vocabulary.h"

namespace trainyard::runner {

namespace {

using Tokens = std::span<const std::int64_t>;
using Counts = std::map<std::vector<std::int64_t>, std::int64_t>;

std::int64_t gram_count(Tokens tokens, std::size_t n) {
  return tokens.size() < n ? 0 : static_cast<std::int64_t>(tokens.size() - n + 1);
}

// How often each n-gram of known words stands in `tokens`.
Counts known_grams(Tokens tokens, std::size_t n) {
  Counts counts;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    const Tokens gram = tokens.subspan(i, n);
    if (std::find(gram.begin(), gram.end(), models::unknown_token) == gram.end())
      ++counts[{gram.begin(), gram.end()}];
  }
  return counts;
}

std::int64_t matches(const Counts& candidate, const Counts& reference) {
  std::int64_t sum = 0;
  for (const auto& [gram, count] : candidate) {
    const auto found = reference.find(gram);
    if (found != reference.end()) sum += std::min(count, found->second);
  }
  return sum;
}

}  // namespace

void BleuSums::add(Tokens candidate, Tokens reference) {
  for (std::size_t n = 1; n <= matched.size(); ++n) {
    matched[n - 1] += matches(known_grams(candidate, n), known_grams(reference, n));
    candidates[n - 1] += gram_count(candidate, n);
  }
  candidate_length += static_cast<std::int64_t>(candidate.size());
  reference_length += static_cast<std::int64_t>(reference.size());
}

}  // namespace trainyard::runner
