#include "orchestrator/resources/shared_lock.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
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
#include "base/host.h"
#include "base/text.h"
#include "experiments/protocol/record.h"
#include "orchestrator/yard/lock_holder.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr mode_t for_everybody = 0666;
constexpr int most_tries = 10;
constexpr auto between_tries = std::chrono::milliseconds(10);
constexpr std::size_t about_lines = 4;  // user, command, yard, time

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

// Why the open file cannot be a lock. Empty if it can. A second name of another file would let its owner have
// that file overwritten.
std::string problem_of(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0 || !S_ISREG(found.st_mode)) return "is not a plain file";
  return found.st_nlink > 1 ? "is a hard link of another file" : "";
}

// UserError: `what` prevents the use of the file.
[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  const std::string variable = host_lock_variable;
  struct stat found {};
  if (::lstat(file.c_str(), &found) != 0)
    throw UserError(what, "name a folder that you may write to with " + variable);
  if (found.st_uid == ::geteuid())
    throw UserError(what, "remove it, or name another folder with " + variable);
  throw UserError(what + ". The file belongs to " + user_name(found.st_uid),
                  "ask its owner or an administrator to remove it, or name another folder with " + variable);
}

// "/run/lock/trainyard-core-3.lock, the lock of core 3"
std::string name_of(const LockPlace& place) {
  return place.file.string() + ", the lock of " + place.of;
}

FileDescriptor opened(const LockPlace& place) {
  FileDescriptor fd = open_or_create(place.file);
  const int error = errno;
  const std::string problem = fd ? problem_of(fd.get()) : "";
  if (fd && problem.empty()) return fd;
  if (fd) refuse(place.file, name_of(place) + ", " + problem);
  const std::string why = error == ELOOP ? "it is a link" : std::generic_category().message(error);
  refuse(place.file, "cannot open " + name_of(place) + ": " + why);
}

// False if another process has the lock.
bool lock_open_file(int fd, const LockPlace& place) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR)
      throw UserError("cannot lock " + name_of(place) + ": " + std::generic_category().message(errno),
                      std::string("name a folder on a local disk with ") + host_lock_variable);
  }
  return true;
}

// The process that holds flock(2) on the open file, from /proc/locks: "1: FLOCK ADVISORY WRITE 4711
// fe:00:2228508 0 EOF". 0 if it is not known.
int locking_process(int fd) {
  struct stat found {};
  if (::fstat(fd, &found) != 0) return 0;
  const std::string id =
      fmt::format("{:02x}:{:02x}:{}", major(found.st_dev), minor(found.st_dev), found.st_ino);
  for (const std::string& line : nonempty_lines(whole_file("/proc/locks"))) {
    std::istringstream fields(line);
    std::string number, kind, advisory, access, file;
    int pid = 0;
    // A process that waits for a lock has "->" in place of the kind.
    if (fields >> number >> kind >> advisory >> access >> pid >> file && kind == "FLOCK" && file == id)
      return pid;
  }
  return 0;
}

// Empty if there is no such process, or if this user may not see it.
std::string user_name_of(int pid) {
  const auto users = users_of(pid);
  return users ? user_name(users->effective) : "";
}

// "process 4711 of ana (sleep), which is not trainyard or did not write its name"
std::string unnamed_process(int pid, const fs::path& file) {
  const std::string user = pid > 0 ? user_name_of(pid) : "";
  if (user.empty()) return unknown_holder(file);
  return fmt::format("process {} of {} ({}), which is not trainyard or did not write its name", pid, user,
                     printable_line(facts_of(pid).value_or(ProcessFacts{}).name));
}

// Whether all users may create files in the folder.
bool is_shared(const struct stat& folder) {
  return S_ISDIR(folder.st_mode) && (folder.st_mode & S_IWOTH) != 0;
}

// Whether users may remove only their own files.
bool is_sticky(const struct stat& folder) {
  return (folder.st_mode & S_ISVTX) != 0;
}

fs::path default_folder() {
  struct stat found {};
  return ::stat("/run/lock", &found) == 0 && is_shared(found) && is_sticky(found) ? "/run/lock" : "/tmp";
}

fs::path named_folder(const char* named) {
  std::error_code failed;
  fs::create_directories(named, failed);
  if (fs::is_directory(named)) return fs::absolute(named);
  throw UserError(std::string(host_lock_variable) + " must be a folder, but is " + printable_line(named) +
                      (failed ? " (" + failed.message() + ")" : ""),
                  "name a folder that you may write to");
}

}  // namespace

fs::path host_lock_folder() {
  const char* named = std::getenv(host_lock_variable);
  fs::path folder = named == nullptr || *named == '\0' ? default_folder() : named_folder(named);
  struct stat found {};
  if (::stat(folder.c_str(), &found) == 0 && is_shared(found) && !is_sticky(found))
    throw UserError(
        "every user can remove the locks of others in " + folder.string(),
        "set its sticky bit (chmod +t), or name another folder with " + std::string(host_lock_variable));
  return folder;
}

LockPlace host_lock_in(const fs::path& folder) {
  return {folder / "trainyard-timed-runs.lock", "this host"};
}

std::optional<SharedLock> SharedLock::try_take(const LockPlace& place, const HostUser& user) {
  while (true) {
    SharedLock lock(opened(place));
    if (!lock_open_file(lock.fd_.get(), place)) return std::nullopt;
    if (!is_still_at(lock.fd_.get(), place.file)) continue;
    static const std::string own_name = user_name(::geteuid());  // the lookup reads several files
    lock.named_ =
        is_lock_text(lock.fd_.get(), about_lines) &&
        write_holder(lock.fd_.get(), {own_name, user.command, user.yard.string(), experiments::utc_now()});
    return lock;
  }
}

std::optional<SharedLock> SharedLock::wait(const LockPlace& place, const HostUser& user,
                                           const std::atomic<int>& stop,
                                           const std::function<void(const std::string& holder)>& on_message) {
  std::string reported;
  while (stop == 0) {
    if (auto lock = try_take(place, user)) return lock;
    if (std::string holder = shared_lock_holder(place); holder != reported) {
      on_message(holder);
      reported = std::move(holder);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return std::nullopt;
}

SharedLock::~SharedLock() {
  if (fd_ && named_) (void)!::ftruncate(fd_.get(), 0);  // before the lock ends
}

std::string shared_lock_holder(const LockPlace& place) {
  const FileDescriptor fd = opened(place);
  const int pid = locking_process(fd.get());
  const auto named = live_holder(fd.get());
  if (!named || named->about.size() != about_lines || (pid > 0 && pid != named->pid))
    return unnamed_process(pid, place.file);
  const auto& about = named->about;
  const std::string user = user_name_of(named->pid);
  return fmt::format("process {} of {} ({}, yard {}), since {}", named->pid, user.empty() ? about[0] : user,
                     about[1], about[2], about[3]);
}

bool taken_soon(const std::function<bool()>& take) {
  for (int tries = 1; !take(); ++tries) {
    if (tries == most_tries) return false;
    std::this_thread::sleep_for(between_tries);
  }
  return true;
}

}  // namespace trainyard::orchestrator
