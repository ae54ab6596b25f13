#include "base/fd.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace trainyard {

void FileDescriptor::reset(int fd) {
  const int error = errno;
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  errno = error;
}

FileDescriptor FileDescriptor::open(const std::filesystem::path& file, int flags, mode_t mode) {
  return FileDescriptor(::open(file.c_str(), flags | O_CLOEXEC, mode));
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace trainyard
