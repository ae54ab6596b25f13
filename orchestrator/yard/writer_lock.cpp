#include "orchestrator/yard/writer_lock.h"

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr int most_tries = 10;
constexpr auto between_tries = std::chrono::milliseconds(5);

struct flock whole_file_lock(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool lock(int fd, short type, const fs::path& file) {
  struct flock wanted = whole_file_lock(type);
  if (::fcntl(fd, F_OFD_SETLK, &wanted) == 0) return true;
  if (errno != EAGAIN && errno != EACCES) throw_file_error(file);
  return false;
}

FileDescriptor opened(const fs::path& file, mode_t mode) {
  return FileDescriptor::open(file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode);
}

// A new, locked file at the path of `old`, which readers have locked. Empty if another writer was faster.
FileDescriptor replaced(const FileDescriptor& old, const fs::path& file) {
  const fs::path next = file.string() + ".new";
  struct stat before {};
  if (!lock(old.get(), F_RDLCK, file) || ::fstat(old.get(), &before) != 0) return {};
  FileDescriptor fresh = opened(next, S_IRUSR | S_IWUSR);
  if (!fresh || !lock(fresh.get(), F_WRLCK, next) || !is_still_at(fresh.get(), next)) return {};
  if (!is_still_at(old.get(), file)) {
    ::unlink(next.c_str());
    return {};
  }
  ::fchmod(fresh.get(), before.st_mode & 0777);
  if (::rename(next.c_str(), file.c_str()) != 0) throw_file_error(file);
  return fresh;
}

}  // namespace

// A query for a read lock reports write locks only.
bool has_writer(int fd) {
  struct flock found = whole_file_lock(F_RDLCK);
  return ::fcntl(fd, F_OFD_GETLK, &found) == 0 && found.l_type == F_WRLCK;
}

WriterLock take_writer_lock(const fs::path& file) {
  FileDescriptor fd;
  for (int tries = 0; tries < most_tries; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(between_tries);
    fd = opened(file, 0666);
    if (!fd) return {};
    if (lock(fd.get(), F_WRLCK, file)) {
      if (is_still_at(fd.get(), file)) return {std::move(fd), true};
    } else if (!has_writer(fd.get())) {
      if (FileDescriptor fresh = replaced(fd, file)) return {std::move(fresh), true};
    }
  }
  return {std::move(fd), false};
}

}  // namespace trainyard::orchestrator
