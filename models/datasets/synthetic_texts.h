// Texts made in the process, so that a machine without any download has something to learn words from: the
// data sets `synthetic-reviews` (which of two opinions a review holds) and `synthetic-phrases` (German
// sentences of a small grammar and their English). Each sample is a pure function of (seed, part, index).
#pragma once

#include <cstdint>

#include "models/samples/samples.h"
#include "models/samples/splits.h"

namespace trainyard::models {

// Changes with every change of the texts: it stands in the fingerprint.
inline constexpr int synthetic_texts_version = 1;

// 2,000 train, 500 validation, 500 test; as many of each label, 0 negative, 1 positive. One to four sentences
// of a review hold an opinion, most of them that of its label, some by "not" and the opposite word; the
// others are about neither.
Parts<RawTexts> synthetic_reviews(std::uint64_t seed);

// 2,000 train, 250 validation, 250 test. Articles and adjectives agree in gender and case; verbs stand where
// German puts them: second, last in a clause with «weil», first in a question, in two parts with an
// auxiliary.
Parts<RawTexts> synthetic_phrases(std::uint64_t seed);

}  // namespace trainyard::models
