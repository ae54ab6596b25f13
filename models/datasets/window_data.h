// Windows of one text, for networks that predict the next token.
//
// - Tokens "characters": a token is a character of Unicode. The vocabulary has all characters of the text, in the
//   order of their codes, after the special tokens (models/samples/tokenizer.h). It does not depend on the
//   training part.
// - Tokens "words": those of the tokenizer (models/samples/tokenizer.h). The vocabulary is that of the training
//   part, and other words are <unk>.
// - Tokens "bpe": those of the choice's `bpe_file` (models/samples/byte_pairs.h), with its numbers. There are no
//   special tokens.
// - The first 90 % of the tokens are the training part, the next 5 % validation, the last 5 % test.
// - Window i of a part with windows of n tokens has its tokens in … in + n. Each token of a part, except the
//   first, is predicted at most once. Up to n − 1 tokens at its end are left out.
#pragma once

#include <filesystem>

#include "models/datasets/datasets.h"

namespace trainyard::models {

// Part of the fingerprint. Increase it if windows change.
inline constexpr int windows_version = 1;

// `facts` and `read` (datasets.h) for data sets of windows.
// UserError if a part has too few tokens for one window, or if `bpe_file` is damaged.
DataFacts window_facts(const Dataset& source, const std::filesystem::path& folder, const DataChoice& choice);
Splits read_windows(const Dataset& source, const DataChoice& choice);

}  // namespace trainyard::models
