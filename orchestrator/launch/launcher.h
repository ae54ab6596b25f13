// Starts the ranks of an attempt and says when they end: the seam between supervision and the operating
// system or a cluster. `launchers` is the table of those there are.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/protocol/end_reason.h"
#include "experiments/run/machine.h"
#include "orchestrator/rank/rank_group_files.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

// How it went, seen from outside.
struct RankGroupEnd {
  // preempted, over_limits, out_of_time or not_started; empty: its ranks ended by themselves or by us
  std::optional<experiments::EndReason> reason = {};
  std::string why = {};  // what the cluster says
};

// The ranks that were launched together. Destroying it ends what is alive of it.
class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual std::optional<ExitStatus> poll(int rank) = 0;  // nothing while it runs; never blocks
  virtual void signal(int number) = 0;                   // to all that run: SIGTERM or SIGKILL
  // Nothing before every rank has ended and nothing is left of it.
  virtual std::optional<RankGroupEnd> end() = 0;
  virtual bool waiting() { return false; }  // in a queue: no rank runs yet
  virtual std::string job() const {
    return "";
  }  // its number in the cluster's queue; empty: none, or not yet
  virtual void add_end_fds(std::vector<int>&) const {}
  virtual nlohmann::ordered_json marks() const = 0;  // how a successor finds it: members of `launched`
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void prepare() {}  // before the first run: UserError if none could be launched
  virtual std::unique_ptr<RankGroup> launch(const LaunchSpec& command) = 0;  // UserError if it cannot start
  // The ranks of an attempt that an earlier orchestrator launched, and that were alive just now.
  virtual std::unique_ptr<RankGroup> adopt(const std::filesystem::path& attempt_folder);
};

// What a launcher is made from.
struct LauncherSetting {
  const experiments::Machine& machine;
  const Programs& programs;
  const Yard& yard;
  std::filesystem::path folder = {};  // of the experiment file
};

std::unique_ptr<Launcher> local_launcher(const Programs& programs, const Yard& yard);
std::unique_ptr<Launcher> mpi_launcher(const LauncherSetting& setting);

// What starts a run's ranks, by the name in `launcher_rules`.
struct LauncherKind {
  std::string name;
  std::unique_ptr<Launcher> (*make)(const LauncherSetting& setting);
};
std::span<const LauncherKind> launchers();

// Fills in what [machine] left open and the surroundings decide: an allocation that this process runs in is
// shared by all runs.
void settle(experiments::Machine& machine);

std::unique_ptr<Launcher> make_launcher(const LauncherSetting& setting);  // the one that [machine] names

}  // namespace trainyard::orchestrator
