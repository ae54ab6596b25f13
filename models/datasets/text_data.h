// From texts to numbers: splits them, makes the vocabularies of the training part, and puts numbers for
// tokens. The vocabularies are kept in the user's cache (`ContentCache`) under the fingerprint of the data
// and what the choice says, so the second process to ask does not count words again.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "models/datasets/datasets.h"

namespace trainyard::models {

// What was worked out from data, kept for the next process under a name that says what went in, so an entry
// is never stale. Nothing depends on it: an entry that cannot be read, or is not what was written, is not
// there, and one that cannot be written is not kept. Processes may write the same entry at once: each writes
// a file of its own and renames it.

class ContentCache {
 public:
  explicit ContentCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::optional<std::string> get(const std::string& name) const;
  void put(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path folder_;  // empty: nothing is kept
};

// $XDG_CACHE_HOME/trainyard, else ~/.cache/trainyard; without both, one that keeps nothing.
ContentCache user_cache();

// A text is cut after so many tokens of its own; <bos> and <eos> are not counted.
inline constexpr std::size_t longest_text = 400;

// `facts` and `read` of datasets.h for a row that is not of images. A text without a token is one <unk>.
DataFacts text_facts(const Dataset& source, const std::filesystem::path& folder, const DataChoice& choice,
                     const ContentCache& cache);
Splits read_texts(const DataChoice& choice, const ContentCache& cache);

}  // namespace trainyard::models
