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

}  // namespace trainyard
