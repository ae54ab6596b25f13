// Plain files whose names come from outside: from a user, an experiment file, a data folder, a yard.
// Opening them never waits. A FIFO, socket, device or folder in place of a file is refused at once, because
// opening or reading it can wait forever or never end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include <fcntl.h>

#include "base/fd.h"

namespace trainyard {

struct OpenedFile {
  FileDescriptor fd;    // empty if there is a problem
  std::string problem;  // "No such file or directory", "it is a FIFO, not a plain file"
  int error = 0;        // errno of the problem; 0 if the file has the wrong kind

  // `fd`. UserError "FILE: cannot be opened: PROBLEM" if there is a problem.
  FileDescriptor or_refuse(const std::filesystem::path& file) &&;
};

// Open a plain file with O_CLOEXEC. A file with O_TRUNC is truncated only if it is a plain file.
OpenedFile open_plain(const std::filesystem::path& file, int flags = O_RDONLY, mode_t mode = 0666);

// The content of a plain file of at most `longest` bytes.
struct PlainContent {
  std::string text;
  std::string problem;  // "it is larger than 64 MiB", or as in OpenedFile; empty if `text` is the content
  int error = 0;        // errno of the problem; 0 if the file has the wrong kind or is too large
};
PlainContent plain_content(const std::filesystem::path& file, std::size_t longest);

// A plain file as a stream. If it cannot be opened, the stream has failed and `problem` is not empty.
class PlainFileReader : public std::istream {
 public:
  explicit PlainFileReader(const std::filesystem::path& file, int flags = 0);  // O_NOFOLLOW: refuse links
  ~PlainFileReader() override = default;
  const std::string& problem() const { return problem_; }

 private:
  std::unique_ptr<std::streambuf> buffer_;
  std::string problem_;
};

// The same for writing from the beginning. Call `close` before the state is checked for errors.
class PlainFileWriter : public std::ostream {
 public:
  explicit PlainFileWriter(const std::filesystem::path& file, int flags = O_TRUNC);
  ~PlainFileWriter() override = default;
  const std::string& problem() const { return problem_; }
  void close();  // fails the stream if not all bytes could be written

 private:
  std::unique_ptr<std::streambuf> buffer_;
  std::string problem_;
};

}  // namespace trainyard
