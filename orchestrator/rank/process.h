// A process of this host, by fork and exec: a rank, a store, or the client of a cluster. In its own session
// and process group, its output in a file, and dead as soon as this process is.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace trainyard::orchestrator
