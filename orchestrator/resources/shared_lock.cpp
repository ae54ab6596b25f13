#include "orchestrator/resources/shared_lock.h"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "experiments/protocol/record.h"
#include "orchestrator/resources/host_lock.h"
#include "orchestrator/yard/lock_holder.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr mode_t for_everybody = 0666;
constexpr int most_tries = 10;
constexpr auto between_tries = std::chrono::milliseconds(10);

// With O_CREAT the kernel would refuse another user's file in a folder like /tmp (fs.protected_regular), so
// it is opened first and created only if it is not there. Empty, with errno, if neither works.
FileDescriptor open_or_create(const fs::path& file) {
  constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  for (int tries = 1;; ++tries) {
    auto fd = FileDescriptor::open(file, O_RDWR | flags);
    if (!fd && errno == ENOENT) {
      fd = FileDescriptor::open(file, O_RDWR | flags | O_CREAT | O_EXCL, for_everybody);
      if (fd) ::fchmod(fd.get(), for_everybody);  // independent of the umask
      if (!fd && errno == EEXIST && tries < most_tries) continue;
    }
    if (!fd && errno == EACCES) fd = FileDescriptor::open(file, O_RDONLY | flags);
    if (fd || errno != EACCES || tries == most_tries) return fd;
    std::this_thread::sleep_for(between_tries);  // its creator may be about to change the mode
  }
}

// A second name of another file would let its owner have that file overwritten.
bool is_plain(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink <= 1;
}

// Whether the open file is still at its path. It may have been removed since.
bool is_still(int fd, const fs::path& file) {
  struct stat opened {
  }, there{};
  return ::fstat(fd, &opened) == 0 && ::lstat(file.c_str(), &there) == 0 && opened.st_dev == there.st_dev &&
         opened.st_ino == there.st_ino;
}

// ". The file belongs to mallory"
std::string owner_text(const fs::path& file) {
  struct stat found {};
  if (::lstat(file.c_str(), &found) != 0 || found.st_uid == ::geteuid()) return "";
  return ". The file belongs to " + user_name(found.st_uid);
}

FileDescriptor opened(const LockPlace& place) {
  const std::string name = place.file.string() + ", the lock of " + place.of;
  FileDescriptor fd = open_or_create(place.file);
  const int error = errno;
  if (fd && is_plain(fd.get())) return fd;
  const std::string owner = owner_text(place.file);
  const std::string advice =
      (owner.empty() ? "remove it" : "ask its owner or an administrator to remove it") +
      std::string(", or name another folder with ") + host_lock_variable;
  if (fd) throw UserError(name + ", is not a plain file" + owner, advice);
  const std::string why = error == ELOOP ? "it is a link" : std::generic_category().message(error);
  throw UserError("cannot open " + name + ": " + why + owner, advice);
}

// The process that holds flock(2) on the open file, from /proc/locks: "1: FLOCK ADVISORY WRITE 4711
// fe:00:2228508 0 EOF". 0 if it is not known.
int locking_process(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return 0;
  const std::string id =
      fmt::format("{:02x}:{:02x}:{}", major(found.st_dev), minor(found.st_dev), found.st_ino);
  std::istringstream lines(whole_file("/proc/locks"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string number, kind, advisory, access, file;
    int pid = 0;
    // A process that waits for a lock has "->" in place of the kind.
    if (fields >> number >> kind >> advisory >> access >> pid >> file && kind == "FLOCK" && file == id)
      return pid;
  }
  return 0;
}

// "process 4711 of ana (sleep), which does not say why"
std::string unnamed_process(int pid) {
  const fs::path process = "/proc/" + std::to_string(pid);
  struct stat found {};
  if (pid <= 0 || ::stat(process.c_str(), &found) != 0) return unknown_holder;
  return fmt::format("process {} of {} ({}), which does not say why", pid, user_name(found.st_uid),
                     printable_line(first_line(whole_file(process / "comm"))));
}

}  // namespace

std::optional<SharedLock> SharedLock::try_take(const LockPlace& place, const HostUser& user) {
  while (true) {
    SharedLock lock(opened(place));
    if (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
    if (!is_still(lock.fd_.get(), place.file)) continue;
    lock.named_ = is_lock_text(lock.fd_.get()) &&
                  write_holder(lock.fd_.get(), {user_name(::geteuid()), user.command, user.yard.string(),
                                                experiments::utc_now()});
    return lock;
  }
}

SharedLock::~SharedLock() {
  if (fd_ && named_) (void)!::ftruncate(fd_.get(), 0);  // before the lock ends
}

std::string shared_lock_holder(const LockPlace& place) {
  const FileDescriptor fd = opened(place);
  const int pid = locking_process(fd.get());
  const auto named = live_holder(fd.get());
  if (!named || named->about.size() != 4 || (pid > 0 && pid != named->pid)) return unnamed_process(pid);
  const auto& about = named->about;
  return fmt::format("process {} of {} ({}, yard {}), since {}", named->pid, about[0], about[1], about[2],
                     about[3]);
}

}  // namespace trainyard::orchestrator
