// Control group (cgroup v2) for the processes of one attempt. The kernel ends all of its processes at once, whatever
// session or environment they have.
//
// It is made below the group of this process. That needs Linux 5.14 and the right to do so: root, or a delegated
// group. Without it the object is empty and does nothing.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include <sys/types.h>

namespace trainyard::orchestrator {

// The folder of this process's own group. Empty if the host has no cgroup v2. `mounts`: the text of
// /proc/self/mountinfo, `own`: that of /proc/self/cgroup.
std::filesystem::path cgroup_folder(const std::string& mounts, const std::string& own);

class Cgroup {
 public:
  Cgroup() = default;
  explicit Cgroup(const std::string& name);
  ~Cgroup();  // removes the group if no process is left in it
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  explicit operator bool() const { return !folder_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }

  // As ::fork, but the child begins in the group. If that fails, or if this process has several threads, the group is
  // removed.
  pid_t fork();
  bool leave() const;  // moves this process to the group above; takes some milliseconds
  void kill() const;   // kills all processes in the group
  bool remove();       // returns false if the group is still there, because it is not empty

 private:
  std::filesystem::path folder_;
};

// The name of the group of an attempt with this token (`orphans.h`). Empty if the token is not one.
std::string cgroup_name(const std::string& token);

// Removes groups of killed programs that are older than `age` and in which no process is left.
void remove_empty_cgroups(std::chrono::seconds age = std::chrono::seconds(60));

// Kills what is left in the group of an earlier attempt, and removes it. The group has the name of this token, and
// belongs to this user. `recorded`: its folder. Empty: only a group below that of this process is found.
void end_cgroup_of(const std::string& token, const std::filesystem::path& recorded = {});

}  // namespace trainyard::orchestrator
