// A file layer that fails on demand, under a whole process: write, fsync, rename, mkdir and truncate of this
// program, SQLite's too, pass through `fault_layer.cpp`, which counts those on files below one folder. The
// production code knows nothing of it. At a chosen call the process is killed (a write is half done then), or
// that call and all later ones fail, as on a disk that is full, broken or read-only.
#pragma once

#include <string>

namespace trainyard::faults {

enum class Fault {
  none,      // only counts
  killed,    // SIGKILL in the middle of the call
  full,      // ENOSPC: writes take half of their bytes, then nothing
  broken,    // EIO
  read_only  // EROFS
};
const char* name_of(Fault fault);

// From now on, in this process and not in its children.
void arm(Fault fault, long at_call, const std::string& folder);
long calls();  // counted so far

// What this process takes for the time of day, moved by so much.
void shift_clock(long seconds);

}  // namespace trainyard::faults
