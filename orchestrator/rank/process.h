// Process on this host, started by Boost.Process: a rank, a store, or a cluster client.
//
// It has its own session and process group, writes its output to a file, and dies with this process.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"

namespace trainyard::orchestrator {

struct RankCommand {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // added to this process's own
  std::vector<int> cores;                          // CPU affinity; empty = inherited
  std::filesystem::path log;                       // stdout and stderr, appended
  std::filesystem::path folder = {};               // working directory; empty = inherited
};

struct ExitStatus {
  int code = 0;       // exit code, or −1
  int signal = 0;     // the signal that ended it, or 0
  bool lost = false;  // ended with its host or job: code and signal are unknown
  bool clean() const { return code == 0 && signal == 0 && !lost; }
};
std::string to_text(const ExitStatus& status);  // "exit code 3", "killed by signal 9 (SIGKILL)"

// One process. The destructor kills its whole group. Only the destructor reaps the process: until then no other one
// can get its pid, which names the group.
class RankProcess {
 public:
  explicit RankProcess(pid_t pid);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  int pid() const { return pid_; }
  std::optional<ExitStatus> poll() const;    // empty while it runs; never blocks
  void signal(int number) const;             // to the whole group
  int end_fd() const { return end_.get(); }  // for poll(2): readable once the process has ended

 private:
  pid_t pid_;
  FileDescriptor end_;
};

// Starts a process, from the main thread only: the kernel kills it when the *thread* that started it ends.
// UserError if it cannot start.
std::unique_ptr<RankProcess> start_process(const RankCommand& command);

struct ClientAnswer {
  ExitStatus status;
  std::string text;  // stdout and stderr, in order
};

// Client of a cluster (sbatch, squeue, scancel) that runs in the background. Its controller may be slow or
// down, and the sweep must not wait for it.
class ClientCommand {
 public:
  // UserError if the program does not exist.
  explicit ClientCommand(std::vector<std::string> argv);

  std::optional<ClientAnswer> poll();  // empty while it runs; never blocks
  // Waits. Empty if it takes longer.
  std::optional<ClientAnswer> wait(std::chrono::milliseconds at_most);

 private:
  FileDescriptor fd_;
  std::filesystem::path output_;
  std::unique_ptr<RankProcess> process_;  // ends before its output is closed
};

// First error message of an answer. "sbatch: error: Batch job submission failed: …" is returned without
// "sbatch: error: ". Else the last line, or the exit status.
std::string complaint(const ClientAnswer& answer);

}  // namespace trainyard::orchestrator
