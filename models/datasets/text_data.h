// Turn texts into token numbers: split the data, build the vocabularies of the training part, number the
// tokens. Vocabularies are stored in the user's cache, so that other processes need not count words again.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "models/datasets/datasets.h"

namespace trainyard::models {

// Cache of computed data in a folder.
// - The name of an entry must depend on everything that it was computed from, so that it is never out of
//   date.
// - An entry that is damaged or cannot be read counts as missing. Failed writes are ignored.
// - Several processes may write the same entry: each writes a temporary file and renames it.
class ContentCache {
 public:
  explicit ContentCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::optional<std::string> get(const std::string& name) const;
  void put(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path folder_;  // empty: nothing is stored
};

// The cache in $XDG_CACHE_HOME/trainyard or ~/.cache/trainyard. Without both variables it stores nothing.
ContentCache user_cache();

// The largest number of tokens of a text. Further tokens are ignored. <bos> and <eos> are not counted.
inline constexpr std::size_t longest_text = 400;

// `facts` and `read` (datasets.h) for data sets of texts. A text without tokens becomes one <unk>.
DataFacts text_facts(const Dataset& source, const std::filesystem::path& folder, const DataChoice& choice,
                     const ContentCache& cache);
Splits read_texts(const Dataset& dataset, const DataChoice& choice, const ContentCache& cache);

}  // namespace trainyard::models
