// Files of a user's program by pattern or folder: entries of `files` such as "pkg/*.py", "pkg/**/*.py".
// - `*`, `?` and `[…]` match characters of one name. The name `**` matches any number of folders, or none.
// - A folder matches all files below it.
// - Hidden names, folders `__pycache__` and files `*.pyc` are ignored.
// - A link to a file counts as the file. A link to a folder or to nothing is ignored.
// - A FIFO, socket or device that matches is found like a file, so that reading it reports it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace trainyard::experiments {

struct FoundFile {
  // Begins like the entry. For an absolute entry: relative to its last folder before the first wildcard.
  std::string name;
  std::filesystem::path place;
};

// Whether `entry` is a folder, or a pattern that is not itself the name of a file.
bool finds_files(const std::string& entry, const std::filesystem::path& folder);

// The files, sorted by name, each once. The same files give the same list on every machine.
// UserError with the location `at` if a folder cannot be read or is not stored, or if there are too many files.
std::vector<FoundFile> found_files(const std::string& entry, const std::filesystem::path& folder,
                                   const Location& at = {});

// UserError with the location `at` if the place is in /proc or /sys: reading there may never end, and the content
// changes. `entry`: the entry of `files` that leads there.
void require_stored(const std::filesystem::path& place, const std::string& entry, const Location& at);

}  // namespace trainyard::experiments
