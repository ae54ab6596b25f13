#include "experiments/config/found_files.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fnmatch.h>

#include "base/error.h"
#include "base/files.h"

namespace trainyard::experiments {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_files = 10'000;

bool has_wildcard(const std::string& name) {
  return name.find_first_of("*?[") != std::string::npos;
}

bool is_left_out(const std::string& name, bool is_folder) {
  return name.starts_with(".") || (is_folder ? name == "__pycache__" : name.ends_with(".pyc"));
}

class Search {
 public:
  explicit Search(std::string entry) : entry_(std::move(entry)) {}

  // Adds the files below `folder` that match `parts` from index `next`. `name` is the path so far.
  void match(const fs::path& folder, const std::string& name, const std::vector<std::string>& parts,
             std::size_t next) {
    const std::string& part = parts.at(next);
    const bool last = next + 1 == parts.size();
    if (part == "**") {
      if (!last) match(folder, name, parts, next + 1);
      for_each(folder, [&](const fs::path& place, const std::string& own, bool is_folder) {
        if (is_folder) match(place, fmt::format("{}{}/", name, own), parts, next);
        if (!is_folder && last) add(place, name + own);
      });
    } else {
      for_each(folder, [&](const fs::path& place, const std::string& own, bool is_folder) {
        if (::fnmatch(part.c_str(), own.c_str(), FNM_PERIOD) != 0) return;
        if (last && !is_folder) add(place, name + own);
        if (!last && is_folder) match(place, fmt::format("{}{}/", name, own), parts, next + 1);
      });
    }
  }

  std::vector<FoundFile> result() const {
    std::vector<FoundFile> files;
    for (const auto& [name, place] : found_) files.push_back({name, place});
    return files;
  }

 private:
  template <class Visit>
  void for_each(const fs::path& folder, Visit visit) {
    std::error_code error;
    for (const std::string& own : names_in(folder, error)) {
      const fs::path place = folder / own;
      const bool folder_here = is_folder(place);
      const bool is_none = fs::is_symlink(place) && (fs::is_directory(place) || !fs::exists(place));
      if (!is_left_out(own, folder_here) && !is_none) visit(place, own, folder_here);
    }
    if (error)
      throw UserError(fmt::format("`files` has \"{}\", but {} cannot be read: {}", entry_, folder.string(),
                                  error.message()),
                      "correct the name or pattern, or the permissions of the folder");
  }

  void add(const fs::path& place, const std::string& name) {
    found_.emplace(name, place);
    if (found_.size() > most_files)
      throw UserError(fmt::format("`files` has \"{}\", which matches more than {} files", entry_, most_files),
                      "list only the files that the program uses");
  }

  std::string entry_;
  std::map<std::string, fs::path> found_;
};

}  // namespace

bool finds_files(const std::string& entry, const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder / entry, error)) return true;
  return has_wildcard(entry) && !fs::exists(folder / entry, error);
}

std::vector<FoundFile> found_files(const std::string& entry, const fs::path& folder) {
  std::vector<std::string> parts;
  fs::path start = folder;
  std::string name;
  for (const fs::path& each : fs::path(entry).lexically_normal()) {
    const std::string part = each.string();
    if (part.empty() || part == ".") continue;
    if (!parts.empty() || has_wildcard(part)) {
      parts.push_back(part);
    } else {
      start /= each;
      name += part + "/";
    }
  }
  if (parts.empty()) parts = {"**"};  // a folder
  if (fs::path(entry).is_absolute()) name.clear();
  std::error_code error;
  Search search(entry);
  if (fs::is_directory(start, error)) search.match(start, name, parts, 0);
  return search.result();
}

}  // namespace trainyard::experiments
