// Files of a program of the user's by pattern or by folder: an entry of `files` as "pkg/*.py", "pkg/**/*.py"
// or "pkg". In a pattern `*`, `?` and `[…]` stand for characters of one name; the name `**` stands for any
// number of folders, also for none. A folder stands for all files below it.
//
// Hidden names, folders `__pycache__` and files `*.pyc` are left out. A link to a file counts as the file; a
// link to a folder is not followed, and what is neither file nor folder is left out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard::experiments {

struct FoundFile {
  std::string name;  // as the entry begins; of an absolute entry below its first folder without a pattern
  std::filesystem::path place;
};

// Whether `entry` is no plain name of a file: a folder, or a pattern of which there is no file of that name.
bool finds_files(const std::string& entry, const std::filesystem::path& folder);

// Sorted by name, each file once; the same files give the same list on every machine.
std::vector<FoundFile> found_files(const std::string& entry, const std::filesystem::path& folder);

}  // namespace trainyard::experiments
