// This host: its name, its programs and its processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace trainyard {

// The name of this host, as records, the recorded environment and messages show it. No other function asks
// the system for it. One line of UTF-8 without control characters: Linux allows any bytes in a host name,
// but a record must be UTF-8.
std::string host_name();

struct Hardware {
  long cores = 0;
  std::int64_t memory_bytes = 0;
  std::string system;  // "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64"
};
Hardware hardware();  // of this host; a container sees the same cores and memory

std::vector<int> affinity();  // CPU numbers that this process may use; empty if unknown
std::string cpu_list_text(const std::vector<int>& cpus);  // {0, 1, 2, 5} → "0-2,5"

bool is_executable(const std::filesystem::path& file);  // a regular file that this process may execute

// The program `name` for a process that starts in `folder`, as execvp finds it. Empty if it is not found.
// The programs of an experiment are looked up before any run starts. A missing program is then an error of
// the experiment file, and not a failed run.
// - A name without a slash is looked up in the folders of PATH (/bin and /usr/bin if PATH is not set).
// - A name with a slash is a path relative to `folder`.
std::optional<std::filesystem::path> program_path(const std::string& name,
                                                  const std::filesystem::path& folder);

// Facts about processes, as the kernel lists them in /proc. No other code reads them there. Each is empty if there is no
// such process, or if this user may not see it.

struct ProcessFacts {
  int pid = 0;
  std::string name;  // may hold any bytes
  int parent = 0;
  std::uint64_t reaped_ticks = 0;  // processor time of children that it has waited for
  std::uint64_t start_ticks = 0;   // since boot: distinguishes it from a later process with the same pid
  std::uintptr_t arguments_begin = 0, arguments_end = 0;  // where its own memory has them
};
// Empty also if it has ended, but was not reaped, unless `ended_too`.
std::optional<ProcessFacts> facts_of(int pid, bool ended_too = false);

struct ProcessUsers {
  uid_t real = 0, effective = 0;
};
std::optional<ProcessUsers> users_of(int pid);

std::string environment_of(int pid);  // when it was started: "A=1", "B=2", each with a zero byte after it

std::vector<int> all_processes();
std::vector<int> own_children();  // of this process, adopted ones too

// The path of a controller ("memory") in a text of /proc/PID/cgroup. Without a name: of the cgroups of version 2.
std::optional<std::string> cgroup_path(const std::string& text, const std::string& controller = "");

// How often the kernel killed a process because memory ran out, also at the limit of a cgroup. Exit status and log of a
// killed process say only "signal 9". From the text of /proc/vmstat; empty if the kernel does not count them.
std::optional<std::int64_t> parse_memory_kills(const std::string& text);
std::optional<std::int64_t> memory_kills();  // of this host since it was started

}  // namespace trainyard
