// Launchers: they start the ranks of an attempt and report how they end. This is the interface between
// supervision and the operating system or a cluster. `launchers` is the table of all launchers.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "experiments/protocol/end_reason.h"
#include "experiments/run/machine.h"
#include "orchestrator/rank/rank_group_files.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// How a group of ranks ended, as the launcher sees it.
struct RankGroupEnd {
  // preempted, over_limits, out_of_time, not_started or failed. Empty: ranks ended by themselves, or we ended them.
  std::optional<experiments::EndReason> reason = {};
  std::string why = {};  // message of the cluster
  int leftovers = 0;     // processes that the ranks left behind, and that the launcher has ended
};

// Ranks that were launched together. The destructor ends those that are alive.
class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual std::optional<ExitStatus> poll(int rank) = 0;  // empty while it runs; never blocks
  virtual void signal(int number) = 0;                   // SIGTERM or SIGKILL to all live ranks
  // Empty until every rank has ended and nothing of the group is left.
  virtual std::optional<RankGroupEnd> end() = 0;
  virtual bool waiting() { return false; }  // in a queue: no rank runs yet
  // Its number in the cluster's queue. Empty: none, or not known yet.
  virtual std::string job() const { return ""; }
  // Members of `launched`, by which a restarted orchestrator finds the group again.
  virtual nlohmann::ordered_json marks() const = 0;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void prepare() {}  // before the first run; UserError if no run could be launched
  virtual std::unique_ptr<RankGroup> launch(const LaunchSpec& command) = 0;  // UserError if it cannot start
  // Reattaches to the live ranks of an attempt that an earlier orchestrator launched.
  virtual std::unique_ptr<RankGroup> adopt(const std::filesystem::path& attempt_folder);
};

// Arguments for making a launcher.
struct LauncherSetting {
  const experiments::Machine& machine;
  const Programs& programs;
  const Yard& yard;
  std::filesystem::path folder = {};  // of the experiment file
};

std::unique_ptr<Launcher> local_launcher(const Programs& programs);

// Row of the table of launchers. `name` is the one in `launcher_rules`.
struct LauncherKind {
  std::string name;
  std::unique_ptr<Launcher> (*make)(const LauncherSetting& setting);
};
std::span<const LauncherKind> launchers();

// Fills in values that [machine] leaves out. Inside a Slurm allocation all runs share it.
void apply_defaults(experiments::Machine& machine);

std::unique_ptr<Launcher> make_launcher(const LauncherSetting& setting);  // the one that [machine] names

}  // namespace trainyard::orchestrator
