// Lock of this host for timed runs: one per host, not per yard, so that only one sweep measures times at
// once.
//
// - Timed sweeps never overlap, even on different cores or GPUs. They share memory bandwidth, caches,
//   the bus to the GPUs and the clock of the cores, and no measurement would show that.
// - The lock is a file (`shared_lock.h`) in a folder that all users share: TRAINYARD_HOST_LOCK, else /run/lock
//   or /tmp, the first one that everybody may write to.
// - Sweeps that are not timed do not take it. They lease each core and GPU (`device_leases.h`).
// - Containers with their own /run/lock do not see each other's locks, but the processor time of other
//   processes is measured too (`processor_use.h`).
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "orchestrator/resources/shared_lock.h"

namespace trainyard::orchestrator {

inline constexpr const char* host_lock_variable = "TRAINYARD_HOST_LOCK";

// Folder of the locks. UserError if the variable names a folder that is not there and cannot be created, or
// where every user can remove the files of others.
std::filesystem::path host_lock_folder();

// Lock that is held while the object lives.
class HostLock {
 public:
  // Empty if another process has it. UserError if the file cannot be used.
  static std::optional<HostLock> try_take(const std::filesystem::path& folder, const HostUser& user);
  // Waits until it is free. Calls `tell` once for each holder. Empty if `stop` was set.
  static std::optional<HostLock> wait(const std::filesystem::path& folder, const HostUser& user,
                                      const std::atomic<int>& stop,
                                      const std::function<void(const std::string& holder)>& tell);

 private:
  explicit HostLock(SharedLock lock) : lock_(std::move(lock)) {}
  SharedLock lock_;
};

// The process that holds the lock, as in `shared_lock_holder`.
std::string host_holder(const std::filesystem::path& folder);

}  // namespace trainyard::orchestrator
