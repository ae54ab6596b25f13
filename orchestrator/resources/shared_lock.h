// Lock file that all users of a host share.
//
// - The file is in a folder where everybody may create files. So any name there can be planted: a link, a pipe,
//   a second name of another file, or a file of somebody else.
// - Links, pipes and files with a second name are refused. A file that does not have the text of a lock is
//   locked, but never overwritten. A file that this user may only read is locked, but cannot name the holder.
// - The lock is flock(2), because all users have to hold it, and because the kernel lists its holder. So any
//   user can also hold it for ever. The refusal then names that process.
// - A new file gets its mode from its creator only. The file is never removed.
// - The kernel frees the lock when the holder dies.
#pragma once

#include <chrono>
#include <filesystem>
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

// Between two attempts to take a lock.
inline constexpr auto ask_again_after = std::chrono::milliseconds(50);

struct LockPlace {
  std::filesystem::path file;
  std::string of;  // "this host", "core 3"
};

// Lock that is held while the object lives.
class SharedLock {
 public:
  // Empty if another process has it. UserError if the file cannot be used.
  static std::optional<SharedLock> try_take(const LockPlace& place, const HostUser& user);

  SharedLock(SharedLock&&) noexcept = default;
  SharedLock& operator=(SharedLock&&) noexcept = default;
  ~SharedLock();

 private:
  explicit SharedLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
  bool named_ = false;
};

// Holder of the lock, always a process that lives: "process 4711 of ana (trainyard run first.toml, yard
// /home/ana/yard), since 2026-11-20T09:30:12.345Z". If the file does not name it, the kernel does: "process
// 4711 of ana (sleep), which does not say why". Else "a process that does not say who it is".
std::string shared_lock_holder(const LockPlace& place);

}  // namespace trainyard::orchestrator
