// How a rank settles as a process: its memory allocator, its cores and threads, the signals it takes, and
// that it never outlives the program that started it.
#pragma once

#include <string>
#include <vector>

namespace trainyard::runner {

// Keeps freed tensors in the heap instead of returning their pages after each one. To be called before
// anything allocates: at the very top of `main`.
void tune_allocator();

// SIGKILL for this process once its parent ends; leaves at once where that has happened already.
void die_with_parent();

// SIGTERM ends the process at once with code 143: records are whole after every `write`, so nothing is lost.
void exit_on_sigterm();

// An exception that no one catches, as NCCL's watchdog throws in a thread of its own, ends the process at
// once with code 1 and one line, "error: …": not with a signal and a core file as large as the memory.
void report_at_terminate();

// From here on a write to a connection that its peer has closed is an error, EPIPE, and not a signal that
// ends the process without a word. Gloo and the store are written for that: Python ignores SIGPIPE from its
// start.
void ignore_broken_pipes();

// Pins the process to `cores` (empty: leaves it as it is); false where the system does not allow that.
bool pin_to(const std::vector<int>& cores);

int available_cores();                                // in this process's affinity
std::string cpu_list(const std::vector<int>& cores);  // {0, 1, 2, 5} → "0-2,5"
std::vector<int> affinity();                          // the cores of this process

}  // namespace trainyard::runner
