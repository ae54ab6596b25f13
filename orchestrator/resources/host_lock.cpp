#include "orchestrator/resources/host_lock.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "experiments/protocol/record.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr const char* file_name = "trainyard-timed-runs.lock";
constexpr auto ask_again_after = std::chrono::milliseconds(50);
constexpr mode_t for_everybody = 0666;

std::string advice() {
  return std::string("remove it, or name another folder with ") + host_lock_variable;
}

// Whether all users may create files in the folder, and remove only their own.
bool is_shared(const char* folder) {
  struct stat found {};
  return ::stat(folder, &found) == 0 && S_ISDIR(found.st_mode) && (found.st_mode & S_IWOTH) != 0 &&
         (found.st_mode & S_ISVTX) != 0;
}

// With O_CREAT the kernel would refuse another user's file in a folder like /tmp (fs.protected_regular), so
// it is opened first and created only if it is not there. Empty, with errno, if neither works.
FileDescriptor open_or_create(const fs::path& file) {
  constexpr int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK;
  for (int tries = 0; tries < 10; ++tries) {
    auto fd = FileDescriptor::open(file, flags);
    if (fd || errno != ENOENT) return fd;
    fd = FileDescriptor::open(file, flags | O_CREAT | O_EXCL, for_everybody);
    if (fd) ::fchmod(fd.get(), for_everybody);  // independent of the umask
    if (fd || errno != EEXIST) return fd;
  }
  return {};
}

// A link to another file would let its owner have that file overwritten.
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

FileDescriptor opened(const fs::path& file) {
  FileDescriptor fd = open_or_create(file);
  if (!fd) {
    const std::string why = errno == ELOOP ? "it is a link" : std::generic_category().message(errno);
    throw UserError("cannot open " + file.string() + ", the lock of this host: " + why, advice());
  }
  if (is_plain(fd.get())) return fd;
  throw UserError(file.string() + ", the lock of this host, is not a plain file", advice());
}

std::string user_name() {
  std::array<char, 4096> memory{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, memory.data(), memory.size(), &found) == 0 && found != nullptr)
    return entry.pw_name;
  return "user " + std::to_string(::geteuid());
}

// Writes the five lines that `host_holder` reads.
void write_holder(int fd, const HostUser& user) {
  const std::string text =
      fmt::format("{}\n{}\n{}\n{}\n{}\n", ::getpid(), user_name(), printable_line(user.command),
                  printable_line(user.yard.string()), experiments::utc_now());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, text.data(), text.size(), 0) < 0)
    throw std::system_error(errno, std::generic_category(), "cannot write the lock of this host");
}

}  // namespace

fs::path host_lock_folder() {
  const char* named = std::getenv(host_lock_variable);
  if (named == nullptr || *named == '\0') return is_shared("/run/lock") ? "/run/lock" : "/tmp";
  std::error_code failed;
  fs::create_directories(named, failed);
  if (fs::is_directory(named)) return fs::absolute(named);
  throw UserError(std::string(host_lock_variable) + " is " + printable_line(named) +
                      ", but there is no such folder" + (failed ? " (" + failed.message() + ")" : ""),
                  "name a folder that you may write to");
}

std::optional<HostLock> HostLock::try_take(const fs::path& folder, const HostUser& user) {
  const fs::path file = folder / file_name;
  while (true) {
    HostLock lock(opened(file));
    if (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) return std::nullopt;
    if (!is_still(lock.fd_.get(), file)) continue;
    write_holder(lock.fd_.get(), user);
    return lock;
  }
}

std::optional<HostLock> HostLock::wait(const fs::path& folder, const HostUser& user,
                                       const std::atomic<int>& stop,
                                       const std::function<void(const std::string& holder)>& tell) {
  std::string told;
  while (stop == 0) {
    if (auto lock = try_take(folder, user)) return lock;
    if (std::string holder = host_holder(folder); holder != told) {
      tell(holder);
      told = std::move(holder);
    }
    std::this_thread::sleep_for(ask_again_after);
  }
  return std::nullopt;
}

std::string host_holder(const fs::path& folder) {
  const FileDescriptor fd = opened(folder / file_name);
  std::string text(8192, '\0');
  const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  std::istringstream lines(text);
  std::array<std::string, 5> parts;  // pid, user, command, yard, since
  for (std::string& part : parts) {
    std::getline(lines, part);
    part = printable_line(part);
  }
  const auto& [pid, user, command, yard, since] = parts;
  if (since.empty()) return "another process";  // it has not written its name yet
  return fmt::format("process {} of {} ({}, yard {}), since {}", pid, user, command, yard, since);
}

}  // namespace trainyard::orchestrator
