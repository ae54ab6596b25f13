// From texts to numbers: splits them, makes the vocabularies of the training part, and puts numbers for
// tokens. The vocabularies are kept in the user's cache (`content_cache.h`) under the fingerprint of the data
// and what the choice says, so the second process to ask does not count words again.
#pragma once

#include <cstddef>

#include "models/datasets/content_cache.h"
#include "models/datasets/datasets.h"

namespace trainyard::models {

// A text is cut after so many tokens of its own; <bos> and <eos> are not counted.
inline constexpr std::size_t longest_text = 400;

// `facts` and `read` of datasets.h for a row that is not of images. A text without a token is one <unk>.
DataFacts text_facts(const Dataset& source, const std::filesystem::path& folder, const DataChoice& choice,
                     const ContentCache& cache);
Splits read_texts(const DataChoice& choice, const ContentCache& cache);

}  // namespace trainyard::models
