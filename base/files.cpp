#include "base/files.h"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/plain_file.h"

namespace trainyard {

namespace {

void sync(const std::filesystem::path& path, int flags) {
  const auto fd = FileDescriptor::open(path, flags | O_NONBLOCK);
  if (!fd || ::fsync(fd.get()) != 0) throw_file_error(path);
}

}  // namespace

void write_durably(const std::filesystem::path& file, std::span<const std::string_view> parts) {
  const std::filesystem::path unfinished = file.string() + ".tmp";
  try {
    OpenedFile opened = open_plain(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    if (opened.error != 0) throw_file_error(unfinished, opened.error);
    const FileDescriptor fd = std::move(opened).or_refuse(unfinished);
    for (const std::string_view part : parts)
      if (const int error = write_all(fd.get(), part); error != 0) throw_file_error(file, error);
    if (::fsync(fd.get()) != 0 || ::rename(unfinished.c_str(), file.c_str()) != 0) throw_file_error(file);
  } catch (...) {
    ::unlink(unfinished.c_str());  // a failed write must not leave its disk space taken
    throw;
  }
  sync_folder(file.parent_path());
}

void sync_file(const std::filesystem::path& file) {
  sync(file, O_RDONLY);
}

void sync_folder(const std::filesystem::path& folder) {
  sync(folder, O_RDONLY | O_DIRECTORY);
}

std::string whole_file(const std::filesystem::path& file) {
  return plain_content(file, std::string::npos).text;
}

std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& failed) {
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed))
    names.push_back(entry->path().filename());
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::error_code failed;
  std::vector<std::string> names = names_in(folder, failed);
  if (failed)
    throw UserError("cannot be read: " + failed.message(), "check its permissions",
                    {.file = folder.string()});
  return names;
}

bool is_folder(const std::filesystem::path& path) {
  return std::filesystem::is_directory(std::filesystem::symlink_status(path));
}

bool is_still_at(int fd, const std::filesystem::path& file) {
  struct stat opened {
  }, there{};
  return ::fstat(fd, &opened) == 0 && ::lstat(file.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

void write_whole_file(const std::filesystem::path& file, const std::string& text) {
  write_durably(file, std::array{std::string_view(text)});
}

}  // namespace trainyard
