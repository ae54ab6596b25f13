// Turn texts into token numbers: split the data, build the vocabularies of the training part, number the
// tokens.
#pragma once

#include <cstddef>
#include <filesystem>

#include "models/datasets/datasets.h"

namespace trainyard::models {

// The largest number of tokens of a text. Further tokens are ignored. <bos> and <eos> are not counted.
inline constexpr std::size_t longest_text = 400;

// `facts` and `read` (datasets.h) for data sets of texts. A text without tokens becomes one <unk>.
DataFacts text_facts(const Dataset& source, const std::filesystem::path& folder, const DataChoice& choice);
Splits read_texts(const Dataset& dataset, const DataChoice& choice);

}  // namespace trainyard::models
