// Starts the processes of a run and says when they end: the seam between supervision and the operating system
// (or a cluster). `local_launcher` starts them on this host; tests use a fake.
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
};

struct ExitStatus {
  int code = 0;    // exit code, or −1
  int signal = 0;  // the signal that ended it, or 0
  bool clean() const { return code == 0 && signal == 0; }
};
std::string to_text(const ExitStatus& status);  // "exit code 3", "killed by signal 9 (SIGKILL)"

// One process of a rank, in its own session and process group; it dies with this process. Destroying a live
// one kills its whole group.
class RankProcess {
 public:
  virtual ~RankProcess() = default;
  virtual int pid() const = 0;
  virtual std::optional<ExitStatus> poll() = 0;  // nothing while it runs; never blocks
  virtual void signal(int number) = 0;           // to the whole group
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual std::unique_ptr<RankProcess> launch(
      const RankCommand& command) = 0;  // UserError where it cannot start
};

std::unique_ptr<Launcher> local_launcher();

}  // namespace trainyard::orchestrator
