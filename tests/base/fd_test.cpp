#include "base/fd.h"

#include <cerrno>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

using namespace trainyard;

namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) != -1;
}

FileDescriptor null_device() {
  return FileDescriptor::open("/dev/null", O_RDONLY);
}

}  // namespace

TEST_CASE("a file descriptor is closed at the end of its scope") {
  int number = -1;
  {
    const FileDescriptor fd = null_device();
    number = fd.get();
    REQUIRE(fd);
    CHECK(is_open(number));
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("a file descriptor that was moved from closes nothing") {
  FileDescriptor first = null_device();
  const int number = first.get();
  {
    FileDescriptor second(std::move(first));
    CHECK(second.get() == number);
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
    first = std::move(second);
  }
  CHECK(first.get() == number);
  CHECK(is_open(number));
}

TEST_CASE("a file descriptor closes what it held when it is given another, and keeps errno") {
  FileDescriptor fd = null_device();
  const int first = fd.get();
  FileDescriptor other = null_device();
  const int second = other.get();
  errno = ENOSPC;
  fd = std::move(other);
  CHECK(errno == ENOSPC);
  CHECK(fd.get() == second);
  CHECK_FALSE(is_open(first));
  fd.reset();
  CHECK_FALSE(fd);
  CHECK_FALSE(is_open(second));
}

TEST_CASE("a released file descriptor is its caller's") {
  FileDescriptor fd = null_device();
  const int number = fd.release();
  CHECK_FALSE(fd);
  fd.reset();
  CHECK(is_open(number));
  ::close(number);
}

TEST_CASE("an opened file is not inherited by programs; one that cannot be opened is empty, with errno") {
  CHECK((::fcntl(null_device().get(), F_GETFD) & FD_CLOEXEC) != 0);
  const FileDescriptor missing = FileDescriptor::open("/dev/null/file", O_RDONLY);
  CHECK(errno == ENOTDIR);
  CHECK_FALSE(missing);
  CHECK(missing.get() < 0);
}
