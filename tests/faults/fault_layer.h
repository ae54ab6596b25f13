// File operations that fail on demand, for a whole process and without changes to production code.
// `fault_layer.cpp` replaces write, fsync, rename, mkdir and truncate, also for SQLite, and counts the calls
// on files below one folder. At a chosen call it kills the process in the middle of a write. Or this call and
// all later ones fail, as on a disk that is full, broken or read-only.
#pragma once

#include <string>

namespace trainyard::faults {

enum class Fault {
  none,      // only counts calls
  killed,    // SIGKILL in the middle of the call
  full,      // ENOSPC: one write is cut to half of its bytes, later ones fail
  broken,    // EIO
  read_only  // EROFS
};
const char* name_of(Fault fault);

// Starts counting in this process. Children are not affected.
void arm(Fault fault, long at_call, const std::string& folder);
long calls();  // since `arm`

// The files and names that were synced since `arm`, for power cuts. Its owner shares it with the child.
struct Synced {
  struct Place {
    char path[240];
    long size;   // of a record file, a journal or a -wal file at its last sync; −1: unknown
    bool named;  // it or its folder was synced while it had this name
  };
  static constexpr int most = 1000;
  Place places[most];
  int count;
};
void watch_syncs(Synced* synced);

// Shifts the time of day that this process sees.
void shift_clock(long seconds);

}  // namespace trainyard::faults
