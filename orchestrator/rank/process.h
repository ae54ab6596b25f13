// A process of this host, by Boost.Process: a rank, a store, or the client of a cluster. In its own session
// and process group, its output in a file, and dead as soon as this process is.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace trainyard::orchestrator {

struct RankCommand {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // added to this process's own
  std::vector<int> cores;                          // CPU affinity; empty = inherited
  std::filesystem::path log;                       // stdout and stderr, appended
  std::filesystem::path folder = {};               // it starts there; empty = inherited
};

struct ExitStatus {
  int code = 0;       // exit code, or −1
  int signal = 0;     // the signal that ended it, or 0
  bool lost = false;  // taken away with its host or job: neither is known
  bool clean() const { return code == 0 && signal == 0 && !lost; }
};
std::string to_text(const ExitStatus& status);  // "exit code 3", "killed by signal 9 (SIGKILL)"

// One process, in its own session and process group; it dies with this process. Destroying a live one kills
// its whole group.
class RankProcess {
 public:
  virtual ~RankProcess() = default;
  virtual int pid() const = 0;
  virtual std::optional<ExitStatus> poll() = 0;  // nothing while it runs; never blocks
  virtual void signal(int number) = 0;           // to the whole group
  // Readable once it has ended, for poll(2): what waits need not ask again and again. −1 where there is none.
  virtual int end_fd() const { return -1; }
};

// From the main thread only: the kernel ends the process with the *thread* that started it. UserError where
// it cannot start.
std::unique_ptr<RankProcess> start_process(const RankCommand& command);

// A program of the cluster's (sbatch, squeue, scancel) that runs beside the sweep: started, asked whether it
// has ended, and then for what it said. Its controller may be slow or away; the sweep must not wait for it.

struct ClientAnswer {
  ExitStatus status;
  std::string text;  // stdout and stderr, as they came
};

class ClientCommand {
 public:
  // UserError where the program is not there.
  explicit ClientCommand(std::vector<std::string> argv);

  std::optional<ClientAnswer> poll();  // nothing while it runs; never blocks
  // Waits; nothing where it takes longer.
  std::optional<ClientAnswer> wait(std::chrono::milliseconds at_most);

 private:
  FileDescriptor fd_;
  std::filesystem::path output_;
  std::unique_ptr<RankProcess> process_;  // ends before its output is closed
};

// The lines of a text, without empty ones.
std::vector<std::string> lines_of(const std::string& text);

// The first line that says what is wrong: "sbatch: error: Batch job submission failed: …" without its head.
std::string complaint(const ClientAnswer& answer);

}  // namespace trainyard::orchestrator
