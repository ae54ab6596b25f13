// Ranks of one attempt on this host, started and ended by a supervisor process.
//
// The supervisor is a fork of this process, and the parent of the ranks. It is a subreaper, so a descendant of a rank
// belongs to it as soon as its parent ends, whatever session or environment that descendant has.
// - All ranks have ended: it ends what they left behind.
// - This process dies, however that happens: it ends all ranks and what they started.
// - The supervisor dies: the kernel kills the ranks. What they started falls to this process, which must be a
//   subreaper too, and which ends it.
// - Both die at once: the kernel kills the ranks. The next `recover` ends what they started, if it has their token.
//
// The file `supervisor.lock` in the attempt's folder is locked until the supervisor has ended. It is for its owner only
// (0600), because whoever can read a file can also lock it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "orchestrator/rank/process.h"
#include "orchestrator/rank/rendezvous.h"

namespace trainyard::orchestrator {

// Processes that a supervisor starts.
struct LocalProcesses {
  std::optional<StoreProcess> store;  // outlives the ranks
  std::vector<std::unique_ptr<RankProcess>> ranks;
};

struct SupervisorSetting {
  std::filesystem::path attempt_folder;  // `supervisor.lock` is in it
  // Supervisors of this process. All other children are orphans when a supervisor dies.
  std::shared_ptr<std::set<int>> supervisors = std::make_shared<std::set<int>>();
};

class SupervisedRanks {
 public:
  // `start` runs in the supervisor. UserError if it throws one, or if there can be no supervisor.
  SupervisedRanks(SupervisorSetting setting, const std::function<LocalProcesses()>& start);
  ~SupervisedRanks() { release(); }  // ends everything and waits for it
  SupervisedRanks(const SupervisedRanks&) = delete;
  SupervisedRanks& operator=(const SupervisedRanks&) = delete;

  int supervisor() const { return supervisor_; }
  const std::vector<int>& pids() const { return pids_; }  // of the ranks

  // `poll` and `end` block only while the supervisor ends, a few seconds at most.
  std::optional<ExitStatus> poll(int rank);  // empty while it runs
  void signal(int number);                   // to all ranks and their process groups

  // How it ended. `leftovers`: processes that the ranks left behind, and that were ended.
  struct End {
    int leftovers = 0;
    std::optional<ExitStatus> supervisor_failed = {};
  };
  std::optional<End> end();  // empty while a rank or the supervisor is left

 private:
  void wait_for_start();
  void read_messages();
  bool read_message();
  bool supervisor_ends();
  void release();

  SupervisorSetting setting_;
  FileDescriptor socket_;
  int supervisor_ = 0;
  std::uint64_t since_ticks_ = 0;
  std::vector<int> pids_;
  std::vector<std::optional<ExitStatus>> ended_;  // by rank
  std::string start_error_;
  bool started_ = false;
  End end_;
  bool over_ = false;
};

// Waits until the supervisor of an attempt has ended. False if it takes longer: it may still end processes.
bool wait_for_supervisor(const std::filesystem::path& attempt_folder,
                         std::chrono::milliseconds at_most = std::chrono::seconds(5));

}  // namespace trainyard::orchestrator
