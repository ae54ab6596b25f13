// Windows of one text, for networks that predict the next character.
//
// - A token is a character of Unicode. The vocabulary has all characters of the text, in the order of their
//   codes, after the special tokens (models/samples/tokenizer.h). It does not depend on the training part.
// - The first 90 % of the characters are the training part, the next 5 % validation, the last 5 % test.
// - Window i of a part with windows of n tokens has its characters in … in + n. Each character of a part, except
//   the first, is predicted at most once. Up to n − 1 characters at its end are left out.
#pragma once

#include <filesystem>

#include "models/datasets/datasets.h"

namespace trainyard::models {

// Part of the fingerprint. Increase it if windows change.
inline constexpr int windows_version = 1;

// `facts` and `read` (datasets.h) for data sets of windows.
// UserError if a part has too few characters for one window.
DataFacts window_facts(const Dataset& source, const std::filesystem::path& folder, const DataChoice& choice);
Splits read_windows(const Dataset& source, const DataChoice& choice);

}  // namespace trainyard::models
