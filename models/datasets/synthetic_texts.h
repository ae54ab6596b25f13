// Generated texts, for training without a download: the data sets `synthetic-reviews` (positive or negative),
// `synthetic-phrases` (German sentences of a small grammar, and their English translations) and
// `synthetic-prose` (the translations). Each sample is a pure function of (seed, part, index).
#pragma once

#include <cstdint>
#include <string>

#include "models/samples/samples.h"

namespace trainyard::models {

// Part of the fingerprint. Increase it if texts change.
inline constexpr int synthetic_texts_version = 1;

// 2,000 reviews in train, 500 in validation, 500 in test.
// - Half of each part has label 0 (negative), half label 1 (positive).
// - One to four sentences of a review are an opinion. Most of them agree with the label.
// - Some opinions are "not" and the opposite word. All other sentences are neutral.
Parts<RawTexts> synthetic_reviews(std::uint64_t seed);

// 2,000 sentences in train, 250 in validation, 250 in test.
// - Articles and adjectives agree with the noun in gender and case.
// - The position of the verb is German: second, last in a clause with "weil", first in a question, and in two
//   parts with an auxiliary verb.
Parts<RawTexts> synthetic_phrases(std::uint64_t seed);

// All English sentences of `synthetic_phrases`, one per line.
std::string synthetic_prose(std::uint64_t seed);

}  // namespace trainyard::models
