// File descriptor with one owner, which closes it once. Used wherever a descriptor outlives a call.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include <sys/types.h>

namespace trainyard {

class FileDescriptor {
 public:
  // With O_CLOEXEC: no program that is started inherits it. Empty, with errno, if that fails.
  // A name that comes from outside: see base/plain_file.h.
  static FileDescriptor open(const std::filesystem::path& file, int flags, mode_t mode = 0666);

  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}  // owns it; a negative number means none
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }

  int get() const { return fd_; }  // negative if there is none
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }  // the caller closes it
  void reset(int fd = -1);                          // closes what is held, and owns `fd`; errno stays

 private:
  int fd_ = -1;
};

// Writes all bytes. Returns 0, or the errno of the write that failed.
int write_all(int fd, std::string_view bytes);

}  // namespace trainyard
