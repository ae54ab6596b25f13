// What was worked out from data, kept for the next process under a name that says what went in, so an entry
// is never stale. Nothing depends on it: an entry that cannot be read, or is not what was written, is not
// there, and one that cannot be written is not kept. Processes may write the same entry at once: each writes
// a file of its own and renames it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::models {

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

}  // namespace trainyard::models
