// Exclusive lock on a file, for processes that can write to it.
//
// Every process that can open a file for reading can hold flock(2) on it. So these are write locks of an open
// file (fcntl(2), F_OFD_SETLK), which need write access.
// - A reader can hold a read lock, which blocks a write lock. The file is then replaced by a new one, which is
//   locked before it gets the name. The mode is kept.
// - Two processes never replace the file at once: each one first locks FILE.new. It also keeps a read lock on
//   the old file meanwhile, so nobody can get the write lock there.
// - Checking for a lock never blocks a lock.
// - The kernel frees the lock when the process dies.
#pragma once

#include <filesystem>

#include "base/fd.h"

namespace trainyard::orchestrator {

struct WriterLock {
  FileDescriptor file;  // empty, with errno, if the file cannot be opened for writing
  bool taken = false;   // false: another process that can write has the lock
};

// Take the lock. Tries for 50 ms. std::system_error if the file system has no such locks.
WriterLock take_writer_lock(const std::filesystem::path& file);

// Whether a process has the lock of this open file. Read access is enough.
bool has_writer(int fd);

}  // namespace trainyard::orchestrator
