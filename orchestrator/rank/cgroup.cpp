#include "orchestrator/rank/cgroup.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr const char* name_begin = "trainyard-";

// Mount point and root of the first cgroup v2: "30 24 0:27 /root /sys/fs/cgroup rw - cgroup2 cgroup2 rw".
struct Mount {
  std::string root, point;
};
Mount mount_of(const std::string& mounts) {
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string skipped;
    Mount found;
    words >> skipped >> skipped >> skipped >> found.root >> found.point;
    if (words) return found;
  }
  return {};
}

// Path of the own group in the hierarchy of version 2: the line "0::/a/b".
std::string path_of(const std::string& own) {
  std::istringstream lines(own);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::/")) return line.substr(3);
  return "";
}

bool write_to(const fs::path& file, const char* text) {
  const auto fd = FileDescriptor::open(file, O_WRONLY | O_NOFOLLOW);
  return fd && ::write(fd.get(), text, std::char_traits<char>::length(text)) > 0;
}

// Whether this process has only one thread. The kernel lists them as folders, and each folder is a link.
bool has_one_thread() {
  struct stat tasks {};
  constexpr nlink_t itself_and_parent = 2;
  return ::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == itself_and_parent + 1;
}

// Forks a process that begins in the group of `folder`. A process that is moved into a group waits 11 to 19 ms. Only clone3
// can start one there. It lacks what ::fork does for locks of the C library, so this process must have one thread.
pid_t fork_into(const fs::path& folder) {
  const auto fd = FileDescriptor::open(folder, O_RDONLY | O_DIRECTORY);
  if (!fd) return -1;
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(fd.get());
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

fs::path own_folder() {
  static const std::string mounts =
      whole_file("/proc/self/mountinfo");  // the kernel writes all for each reader
  return cgroup_folder(mounts, whole_file("/proc/self/cgroup"));
}

}  // namespace

fs::path cgroup_folder(const std::string& mounts, const std::string& own) {
  const Mount mount = mount_of(mounts);
  std::string path = path_of(own);
  if (mount.point.empty() || path.empty() || path.find("/..") != std::string::npos) return {};
  if (mount.root != "/") {  // a part of the hierarchy is mounted
    if (path != mount.root && !path.starts_with(mount.root + "/")) return {};
    path.erase(0, mount.root.size());
  }
  const fs::path below = fs::path(path).relative_path();
  return below.empty() ? fs::path(mount.point) : fs::path(mount.point) / below;
}

Cgroup::Cgroup(const std::string& name) {
  const fs::path above = own_folder();
  if (name.empty() || above.empty()) return;
  const fs::path folder = above / name;
  constexpr mode_t readable = 0755;
  if (::mkdir(folder.c_str(), readable) != 0) return;
  folder_ = folder;
  if (::access((folder / "cgroup.kill").c_str(), W_OK) != 0) remove();
}

Cgroup::~Cgroup() {
  remove();
}

bool Cgroup::remove() {
  if (!folder_.empty() && ::rmdir(folder_.c_str()) != 0 && errno != ENOENT) return false;
  folder_.clear();
  return true;
}

pid_t Cgroup::fork() {
  if (!folder_.empty() && has_one_thread())
    if (const pid_t pid = fork_into(folder_); pid >= 0) return pid;
  remove();
  return ::fork();
}

bool Cgroup::leave() const {
  return !folder_.empty() && write_to(folder_.parent_path() / "cgroup.procs", "0");
}

void Cgroup::kill() const {
  if (!folder_.empty()) write_to(folder_ / "cgroup.kill", "1");
}

std::string cgroup_name(const std::string& token) {
  constexpr std::size_t digits = 32;
  if (token.size() != digits || token.find_first_not_of("0123456789abcdef") != std::string::npos) return "";
  return name_begin + token;
}

void remove_empty_cgroups(std::chrono::seconds age) {
  std::error_code failed;
  const fs::path above = own_folder();
  for (const std::string& name : names_in(above, failed)) {
    const fs::path folder = above / name;
    struct stat status {};
    if (name.starts_with(name_begin) && ::lstat(folder.c_str(), &status) == 0 &&
        status.st_uid == ::geteuid() && std::time(nullptr) - status.st_ctime >= age.count())
      ::rmdir(folder.c_str());  // fails if a process is left
  }
}

namespace {

void end_group(const fs::path& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
    return;
  write_to(folder / "cgroup.kill", "1");
  constexpr int most_tries = 200;
  for (int tries = 0; ::rmdir(folder.c_str()) != 0 && errno == EBUSY && tries < most_tries; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

bool is_in_cgroup_filesystem(const fs::path& folder) {
  struct statfs found {};
  return ::statfs(folder.c_str(), &found) == 0 && found.f_type == CGROUP2_SUPER_MAGIC;
}

}  // namespace

void end_cgroup_of(const std::string& token, const fs::path& recorded) {
  const std::string name = cgroup_name(token);
  if (name.empty()) return;
  if (const fs::path above = own_folder(); !above.empty()) end_group(above / name);
  if (recorded.is_absolute() && recorded.filename() == name && is_in_cgroup_filesystem(recorded))
    end_group(recorded);
}

}  // namespace trainyard::orchestrator
