// Lock file that all users of a host share: the lock of this host for timed runs, and one for each core and GPU.
//
// - Timed sweeps never overlap, even on different cores or GPUs. They share memory bandwidth, caches, the bus to the GPUs
//   and the clock of the cores, and no measurement would show that.
// - Sweeps that are not timed do not take the lock of the host. They lease each core and GPU (`device_leases.h`).
// - Containers with their own /run/lock do not see each other's locks, but the processor time of other processes is
//   measured too (`processor_use.h`).
//
// The file:
// - The file is in a folder where everybody may create files. So any name there can be planted: a link, a pipe,
//   a second name of another file, or a file of somebody else.
// - Links, pipes and files with a second name are refused. A file is overwritten only if it is empty or has the
//   text of a lock. Otherwise it is locked, but cannot name the holder. So is a file that this user may only
//   read.
// - The lock is flock(2), because all users have to hold it, and because the kernel lists its holder. So any
//   user can also hold it for ever. The refusal then names that process, if the kernel shows it.
// - A new file gets its mode from its creator only. The file is never removed.
// - The kernel frees the lock when the holder dies.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"

namespace trainyard::orchestrator {

// Process that holds a lock or waits for it.
struct HostUser {
  std::string command;         // "trainyard run first.toml"
  std::filesystem::path yard;  // absolute
};

struct LockPlace {
  std::filesystem::path file;
  std::string of;  // "this host", "core 3"
};

inline constexpr const char* host_lock_variable = "TRAINYARD_HOST_LOCK";

// Folder of the locks: TRAINYARD_HOST_LOCK, else /run/lock or /tmp, the first one that everybody may write to. UserError if
// the variable names a folder that is not there and cannot be created, or where every user can remove the files of others.
std::filesystem::path host_lock_folder();

LockPlace host_lock_in(const std::filesystem::path& folder);

// Lock that is held while the object lives.
class SharedLock {
 public:
  // Empty if another process has it. UserError if the file cannot be used, or if its file system has no locks.
  static std::optional<SharedLock> try_take(const LockPlace& place, const HostUser& user);
  // Waits until it is free. Calls `on_message` once for each holder. Empty if `stop` was set.
  static std::optional<SharedLock> wait(const LockPlace& place, const HostUser& user,
                                        const std::atomic<int>& stop,
                                        const std::function<void(const std::string& holder)>& on_message);

  SharedLock(SharedLock&&) noexcept = default;
  SharedLock& operator=(SharedLock&&) noexcept = default;
  ~SharedLock();

 private:
  explicit SharedLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
  bool named_ = false;
};

// Holder of the lock, always a process that lives: "process 4711 of ana (trainyard run first.toml, yard
// /home/ana/yard), since 2026-11-20T09:30:12.345Z".
// - The number and the user are the kernel's, if it shows them. Everybody can write the rest into the file.
// - If the file does not name the process: "process 4711 of ana (sleep), which is not trainyard or did not write
//   its name".
// - If the kernel does not name it either: "an unknown process (find it with `fuser FILE`)".
std::string shared_lock_holder(const LockPlace& place);

// Repeats `take` for about 100 ms until it returns true. A sweep that waits for devices takes their locks for a
// moment, so one attempt can fail although nobody uses the device.
bool taken_soon(const std::function<bool()>& take);

}  // namespace trainyard::orchestrator
