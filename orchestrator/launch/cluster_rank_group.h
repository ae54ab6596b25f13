// Ranks that tasks on other hosts watch (`rank_agent.h`): how each ended is read from the file that its task
// leaves. What the launcher knows of the job as a whole is asked of `Job`. Files may show up late.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launch/launcher.h"
#include "orchestrator/rank/rank_group_files.h"
#include "orchestrator/resources/programs.h"
#include "orchestrator/yard/yard.h"

namespace trainyard::orchestrator {

class ClusterRankGroup : public RankGroup {
 public:
  ClusterRankGroup(std::filesystem::path attempt_folder, int world_size);
  std::optional<ExitStatus> poll(int rank) override;
  std::optional<RankGroupEnd> end() override;
  void signal(int number) override;

 protected:
  using EndReason = experiments::EndReason;
  static std::optional<EndReason> preempted_if(bool preempted) {
    return preempted ? std::optional(EndReason::preempted) : std::nullopt;
  }
  // The job has ended and nothing of it is left.
  virtual std::optional<RankGroupEnd> over() = 0;
  virtual void step() = 0;  // asks how the job is; never blocks
  virtual void signal_job(int number) = 0;
  virtual void wants_to_know() {}        // the job will soon be over
  virtual void let_go() {}               // all ranks have ended well: the job ends by itself
  bool begun() const { return begun_; }  // a rank has written something
  bool none_ended() const { return exits_.empty(); }
  bool all_ended() const { return static_cast<int>(exits_.size()) == world_size_; }
  bool told() const { return told_by_us_; }  // `signal` was called

 private:
  using Clock = std::chrono::steady_clock;
  void look();
  bool all_clean() const;

  std::filesystem::path folder_;
  int world_size_;
  std::chrono::steady_clock::duration patience_;  // with files of an ended job that have not come
  std::map<int, RankExit> exits_;
  int told_by_others_ = 0;  // signal that a task got and we did not send
  bool told_by_us_ = false;
  bool begun_ = false;
  bool any_lost_ = false;  // a rank whose end nobody wrote down
  Clock::time_point next_look_, over_since_ = Clock::time_point::max();
};

// Whether the nodes of a cluster share the folder of the runs with this host. Asked once, before the first
// run, by a task that looks for a file which was written here and writes one itself.

// The side that asks. Its files, and what its job printed, are gone with it.
class SharedDirCheck {
 public:
  explicit SharedDirCheck(std::filesystem::path runs);
  ~SharedDirCheck();
  SharedDirCheck(const SharedDirCheck&) = delete;
  SharedDirCheck& operator=(const SharedDirCheck&) = delete;

  std::string job_name() const;
  std::vector<std::string> task(const Programs& programs) const;  // the command that answers

  // Whether it has come and says that all is well. UserError where it says that something is not.
  bool answered(const Programs& programs) const;

 private:
  std::filesystem::path runs_;
  std::string name_;
};

// Whether an earlier sweep of this yard has had the answer, and that this one has.
bool spool_was_seen(const Yard& yard);
void note_spool_seen(const Yard& yard);

// What to do where no answer comes, or a wrong one.
inline constexpr const char* share_the_spool =
    "set `spool` in [machine] to a folder that this host and all nodes share";

// The side that answers: writes `probe-NAME` into `folder`: whether this host sees what was asked, and can
// run `runner`. An exit code.
int answer_spool_probe(const std::filesystem::path& folder, const std::string& name,
                       const std::filesystem::path& runner);

}  // namespace trainyard::orchestrator
