// A tar archive, plain or gzip, read once from front to back without unpacking it to disk (libarchive).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace trainyard::models {

class Archive {
 public:
  // UserError where the file cannot be opened.
  explicit Archive(const std::filesystem::path& path);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // The name of the next regular file; nothing after the last. UserError names file and byte where the
  // archive is cut off or damaged, also behind its last file.
  std::optional<std::string> next();
  std::string content();  // of that file; at most once each

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::models
