#include "orchestrator/resources/host_lock.h"

#include <cstdlib>
#include <system_error>
#include <thread>

#include <sys/stat.h>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

constexpr const char* file_name = "trainyard-timed-runs.lock";

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

LockPlace place_in(const fs::path& folder) {
  return {folder / file_name, "this host"};
}

}  // namespace

fs::path host_lock_folder() {
  const char* named = std::getenv(host_lock_variable);
  const fs::path folder = named == nullptr || *named == '\0' ? default_folder() : named_folder(named);
  struct stat found {};
  if (::stat(folder.c_str(), &found) == 0 && is_shared(found) && !is_sticky(found))
    throw UserError(
        "every user can remove the locks of others in " + folder.string(),
        "set its sticky bit (chmod +t), or name another folder with " + std::string(host_lock_variable));
  return folder;
}

std::optional<HostLock> HostLock::try_take(const fs::path& folder, const HostUser& user) {
  auto lock = SharedLock::try_take(place_in(folder), user);
  if (!lock) return std::nullopt;
  return HostLock(std::move(*lock));
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
  return shared_lock_holder(place_in(folder));
}

}  // namespace trainyard::orchestrator
