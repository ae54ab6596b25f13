#include "experiments/config/found_files.h"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fnmatch.h>
#include <linux/magic.h>
#include <sys/vfs.h>

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

struct Entry {
  std::string name;
  fs::path place;
  bool is_folder = false;
};

// The entries of a folder that are not left out.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<Entry> entries;
  for (const std::string& name : names_in(folder, error)) {
    Entry entry{name, folder / name, is_folder(folder / name)};
    const bool is_none =
        fs::is_symlink(entry.place) && (fs::is_directory(entry.place) || !fs::exists(entry.place));
    if (!is_left_out(name, entry.is_folder) && !is_none) entries.push_back(std::move(entry));
  }
  if (error) throw fs::filesystem_error("", folder, error);
  return entries;
}

// Reads each folder once, whatever the pattern is. So the work is linear in the number of entries.
class Search {
 public:
  Search(std::string entry, std::vector<std::string> parts, Location at)
      : entry_(std::move(entry)), parts_(std::move(parts)), at_(std::move(at)) {}

  // `name`: the path of `start` in names of the result.
  std::vector<FoundFile> below(const fs::path& start, const std::string& name) {
    try {
      walk(start, name, with_successors(0));
    } catch (const fs::filesystem_error& error) {
      throw UserError(fmt::format("`files` has \"{}\", but {} cannot be read: {}", entry_,
                                  error.path1().string(), error.code().message()),
                      "correct the name or pattern, or the permissions of the folder", at_);
    }
    std::vector<FoundFile> files;
    for (const auto& [found, place] : found_) files.push_back({found, place});
    return files;
  }

 private:
  using Parts = std::set<std::size_t>;  // indices of `parts_`

  bool is_last(std::size_t part) const { return part + 1 == parts_.size(); }

  // `part`, and those that can match in its place, because ** can match no folder.
  Parts with_successors(std::size_t part) const {
    Parts all{part};
    while (parts_[part] == "**" && !is_last(part)) all.insert(++part);
    return all;
  }

  // Adds the files below `folder` that match. `parts`: those that its entries can match.
  void walk(const fs::path& folder, const std::string& name, const Parts& parts) {
    require_stored(folder, entry_, at_);
    for (const Entry& entry : entries_of(folder)) {
      Parts below;
      for (const std::size_t part : parts) {
        const bool any = parts_[part] == "**";
        if (!any && ::fnmatch(parts_[part].c_str(), entry.name.c_str(), FNM_PERIOD) != 0) continue;
        if (entry.is_folder && (any || !is_last(part))) below.merge(with_successors(any ? part : part + 1));
        if (!entry.is_folder && is_last(part)) add(entry.place, name + entry.name);
      }
      if (!below.empty()) walk(entry.place, fmt::format("{}{}/", name, entry.name), below);
    }
  }

  void add(const fs::path& place, const std::string& name) {
    found_.emplace(name, place);
    if (found_.size() > most_files)
      throw UserError(fmt::format("`files` has \"{}\", which matches more than {} files", entry_, most_files),
                      "list only the files that the program uses", at_);
  }

  std::string entry_;
  std::vector<std::string> parts_;
  Location at_;
  std::map<std::string, fs::path> found_;
};

}  // namespace

bool finds_files(const std::string& entry, const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder / entry, error)) return true;
  return has_wildcard(entry) && !fs::exists(folder / entry, error);
}

void require_stored(const fs::path& place, const std::string& entry, const Location& at) {
  struct statfs found {};
  if (::statfs(place.c_str(), &found) != 0) return;
  if (found.f_type != PROC_SUPER_MAGIC && found.f_type != SYSFS_MAGIC) return;
  throw UserError(
      fmt::format("`files` has \"{}\", but {} is made by the kernel and is not a stored file or folder",
                  entry, place.string()),
      "list only the files that the program uses", at);
}

std::vector<FoundFile> found_files(const std::string& entry, const fs::path& folder, const Location& at) {
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
  if (!fs::is_directory(start, error)) return {};
  return Search(entry, std::move(parts), at).below(start, name);
}

}  // namespace trainyard::experiments
