// Samples of the user in one folder per class: pictures (data set "folder") and texts ("text-folder").
//
// - The classes in the order of their names have the labels 0, 1, ….
// - Hidden files and folders are ignored. Any other folder without samples is an error: it may be a copy that
//   stopped.
// - The classes may be in subfolders `train`, `validation` and `test`. `validation` and `test` are optional.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/samples/samples.h"

namespace trainyard::models {

// Which files of a class folder are samples.
struct SampleFiles {
  bool (*is_name)(const std::string& name);
  const char* kind;     // "PNG or JPEG file"
  const char* samples;  // "pictures"
};

struct LabelledFile {
  std::string name;  // with its class: "cat/1.jpg"
  std::filesystem::path path;
  std::int32_t label = 0;
};

struct ClassFolders {
  std::vector<std::string> classes;
  bool in_parts = false;                   // whether the classes are below `train`, `validation` and `test`
  Parts<std::vector<LabelledFile>> files;  // by label, then by name
};

// Whether there is a class folder, perhaps below `train`.
bool holds_classes(const std::filesystem::path& folder, const SampleFiles& files);

// UserError if a folder cannot be read, a class has no sample, or a class is not in `train`.
ClassFolders find_class_folders(const std::filesystem::path& folder, const SampleFiles& files);

}  // namespace trainyard::models
