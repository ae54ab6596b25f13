#include "base/plain_file.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include <ext/stdio_filebuf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace trainyard {

namespace {

using Buffer = __gnu_cxx::stdio_filebuf<char>;  // std::filebuf cannot be made from a descriptor

std::string reason_of(int error) {
  return std::generic_category().message(error);
}

// "it is a FIFO, not a plain file". Empty for a plain file.
std::string kind_problem(mode_t mode) {
  const char* kind = S_ISFIFO(mode)   ? "a FIFO"
                     : S_ISDIR(mode)  ? "a folder"
                     : S_ISSOCK(mode) ? "a socket"
                     : S_ISLNK(mode)  ? "a link"
                                      : "a device";
  return S_ISREG(mode) ? "" : std::string("it is ") + kind + ", not a plain file";
}

// The kind of a file that open(2) refuses: it explains more than "No such device or address". Empty for others.
std::string kind_on_disk(const std::filesystem::path& file, int flags) {
  struct stat found {};
  const int result = (flags & O_NOFOLLOW) != 0 ? ::lstat(file.c_str(), &found) : ::stat(file.c_str(), &found);
  return result == 0 ? kind_problem(found.st_mode) : "";
}

std::unique_ptr<std::streambuf> buffer_of(OpenedFile& opened, std::ios::openmode mode) {
  if (!opened.fd) return nullptr;
  auto buffer = std::make_unique<Buffer>(opened.fd.get(), mode | std::ios::binary);
  if (!buffer->is_open()) throw std::bad_alloc();  // fdopen found no memory; the file would look empty
  opened.fd.release();
  return buffer;
}

}  // namespace

FileDescriptor OpenedFile::or_refuse(const std::filesystem::path& file) && {
  if (!fd) throw UserError(file.string() + ": cannot be opened: " + problem);
  return std::move(fd);
}

OpenedFile open_plain(const std::filesystem::path& file, int flags, mode_t mode) {
  auto fd = FileDescriptor::open(file, (flags & ~O_TRUNC) | O_NONBLOCK | O_NOCTTY, mode);
  struct stat found {};
  if (!fd || ::fstat(fd.get(), &found) != 0) {
    const int error = errno;
    const std::string kind = kind_on_disk(file, flags);
    return {{}, kind.empty() ? reason_of(error) : kind, kind.empty() ? error : 0};
  }
  if (const std::string kind = kind_problem(found.st_mode); !kind.empty()) return {{}, kind, 0};
  if ((flags & O_TRUNC) != 0 && ::ftruncate(fd.get(), 0) != 0) return {{}, reason_of(errno), errno};
  ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK);  // a program that inherits it expects to wait
  return {std::move(fd), "", 0};
}

PlainContent plain_content(const std::filesystem::path& file, std::size_t longest) {
  const OpenedFile opened = open_plain(file);
  if (!opened.fd) return {"", opened.problem, opened.error};
  struct stat found {};
  if (::fstat(opened.fd.get(), &found) != 0) return {"", reason_of(errno), errno};
  const auto size = static_cast<std::size_t>(found.st_size);
  constexpr std::size_t piece = 4096;  // files of /proc do not state their size
  std::string text;
  std::size_t done = 0;
  while (size <= longest && done <= longest) {
    if (done == text.size()) text.resize(std::max(size, done) + piece);
    const ssize_t count = ::read(opened.fd.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {"", reason_of(errno), errno};
    done += static_cast<std::size_t>(count);
    if (count > 0) continue;
    text.resize(done);
    return {std::move(text), "", 0};
  }
  return {"", "it is larger than " + std::to_string(longest >> 20) + " MiB", 0};
}

PlainFileReader::PlainFileReader(const std::filesystem::path& file, int flags) : std::istream(nullptr) {
  OpenedFile opened = open_plain(file, O_RDONLY | flags);
  problem_ = std::move(opened.problem);
  buffer_ = buffer_of(opened, std::ios::in);
  rdbuf(buffer_.get());  // also sets the state: bad without a buffer
}

PlainFileWriter::PlainFileWriter(const std::filesystem::path& file, int flags) : std::ostream(nullptr) {
  OpenedFile opened = open_plain(file, O_WRONLY | O_CREAT | flags);
  problem_ = std::move(opened.problem);
  buffer_ = buffer_of(opened, std::ios::out);
  rdbuf(buffer_.get());
}

void PlainFileWriter::close() {
  auto* buffer = static_cast<Buffer*>(buffer_.get());
  if (buffer == nullptr || buffer->close() == nullptr) setstate(std::ios::badbit);
}

}  // namespace trainyard
