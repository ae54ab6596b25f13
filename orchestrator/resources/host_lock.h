// Lock of this host for timed runs: one per host, not per yard, so that only one sweep measures times at
// once.
//
// A file that is locked with flock(2) in a folder that all users share: TRAINYARD_HOST_LOCK, else /run/lock
// or /tmp, the first one that everybody may write to. It is never removed. The kernel frees the lock when the
// holder dies. The file says who holds it: process, user, command, yard and since when.
// Containers with their own /run/lock do not see each other's locks, but the processor time of other
// processes is measured too (`processor_use.h`).
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"

namespace trainyard::orchestrator {

inline constexpr const char* host_lock_variable = "TRAINYARD_HOST_LOCK";

// Folder of the lock. UserError if the variable names a folder that is not there and cannot be created.
std::filesystem::path host_lock_folder();

// Process that holds the lock or waits for it.
struct HostUser {
  std::string command;         // "trainyard run first.toml"
  std::filesystem::path yard;  // absolute
};

// Lock that is held while the object lives.
class HostLock {
 public:
  // Empty if another process has it. UserError if the file is not a plain file, or if this user may not open
  // it.
  static std::optional<HostLock> try_take(const std::filesystem::path& folder, const HostUser& user);
  // Waits until it is free. Calls `tell` once for each holder. Empty if `stop` was set.
  static std::optional<HostLock> wait(const std::filesystem::path& folder, const HostUser& user,
                                      const std::atomic<int>& stop,
                                      const std::function<void(const std::string& holder)>& tell);

 private:
  explicit HostLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// "process 4711 of ana (trainyard run first.toml, yard /home/ana/yard), since 2026-11-20T09:30:12.345Z".
std::string host_holder(const std::filesystem::path& folder);

}  // namespace trainyard::orchestrator
