#include "models/readers/class_folders.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

// Otherwise a class could be missed.
[[noreturn]] void fail_unreadable(const fs::path& folder, const std::error_code& error) {
  throw UserError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
}

// The sorted names in `folder` for which `fits` is true. Empty if there is no such folder.
// UserError if the folder cannot be read.
template <typename Fits>
Names fitting_names(const fs::path& folder, const Fits& fits) {
  Names names;
  if (!fs::is_directory(folder)) return names;
  std::error_code error;
  names = names_in(folder, error);
  if (error) fail_unreadable(folder, error);
  std::erase_if(names, [&](const std::string& name) { return name.starts_with('.') || !fits(name); });
  return names;
}

// Hidden folders belong to other programs: .git, .ipynb_checkpoints.
Names folders_in(const fs::path& folder) {
  return fitting_names(folder, [&](const std::string& name) { return fs::is_directory(folder / name); });
}

// Ends at the first one: there may be many.
bool has_samples(const fs::path& folder, const SampleFiles& files) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with('.') && files.is_name(name)) return true;
  }
  if (error) fail_unreadable(folder, error);
  return false;
}

Names classes_in(const fs::path& folder, const SampleFiles& files) {
  Names names = folders_in(folder);
  std::erase_if(names, [&](const std::string& name) { return !has_samples(folder / name, files); });
  return names;
}

// An empty class folder may be an incomplete copy. The model must not silently be trained without that class.
[[noreturn]] void fail_empty(const fs::path& folder, const Names& names, const SampleFiles& files) {
  throw UserError(fmt::format("{}: these class folders have no {}: \"{}\"", folder.string(), files.kind,
                              fmt::join(names, "\", \"")),
                  fmt::format("add their {}, or remove the folders", files.samples));
}

std::int32_t label_of(const std::string& name, const Names& classes, const fs::path& folder) {
  const auto found = std::ranges::find(classes, name);
  if (found == classes.end())
    throw UserError(fmt::format("{}: the training part has no class \"{}\"", (folder / name).string(), name),
                    "use the same class names in all parts");
  return static_cast<std::int32_t>(found - classes.begin());
}

std::vector<LabelledFile> files_of(const fs::path& folder, const Names& classes, const SampleFiles& files) {
  std::vector<LabelledFile> found;
  Names empty;
  for (const std::string& name : folders_in(folder)) {
    const Names samples = fitting_names(folder / name, files.is_name);
    if (samples.empty()) {
      empty.push_back(name);
      continue;
    }
    const std::int32_t label = label_of(name, classes, folder);
    for (const std::string& file : samples)
      found.push_back({(fs::path(name) / file).string(), folder / name / file, label});
  }
  if (!empty.empty()) fail_empty(folder, empty, files);
  return found;
}

}  // namespace

bool holds_classes(const fs::path& folder, const SampleFiles& files) {
  return !classes_in(folder, files).empty() || !classes_in(folder / "train", files).empty();
}

ClassFolders find_class_folders(const fs::path& folder, const SampleFiles& files) {
  ClassFolders found;
  found.classes = classes_in(folder / "train", files);
  found.in_parts = !found.classes.empty();
  if (!found.in_parts) found.classes = classes_in(folder, files);
  const auto part = [&](const fs::path& from) { return files_of(from, found.classes, files); };
  found.files.train = part(found.in_parts ? folder / "train" : folder);
  if (!found.in_parts) return found;
  found.files.validation = part(folder / "validation");
  found.files.test = part(folder / "test");
  return found;
}

}  // namespace trainyard::models
