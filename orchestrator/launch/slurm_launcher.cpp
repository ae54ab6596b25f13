#include "orchestrator/launch/slurm_launcher.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "orchestrator/launch/cluster_rank_group.h"
#include "orchestrator/launch/slurm_jobs.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

// The only shell script. Everything that varies is passed as arguments.
constexpr const char* script_text = "#!/bin/sh\nexec srun \"$@\"\n";
constexpr auto files_patience = std::chrono::seconds(30);  // until a job's file appears here
constexpr auto failed_patience = std::chrono::seconds(5);  // the same if the job has failed anyway

class SlurmRankGroup : public ClusterRankGroup {
 public:
  SlurmRankGroup(SlurmQueue& queue, const RankGroupFile& group, std::vector<std::string> submit)
      : ClusterRankGroup(group.command),
        name_(group.job),
        queue_(queue),
        job_(queue, group.job, std::move(submit)) {}

  bool waiting() override {
    return job_.stage() == SlurmJob::Stage::submitting || job_.stage() == SlurmJob::Stage::queued;
  }
  std::string job() const override { return job_.id(); }
  nlohmann::ordered_json marks() const override { return {{"launcher", "slurm"}, {"job_name", name_}}; }

 protected:
  std::optional<RankGroupEnd> over() override {
    if (job_.stage() != SlurmJob::Stage::over) return std::nullopt;
    const std::string id = job_.id().empty() ? "" : "its Slurm job " + job_.id() + ": ";
    const auto reason = job_.reason() == EndReason::stopped ? preempted_if(!signalled()) : job_.reason();
    return RankGroupEnd{reason, id + job_.why()};
  }
  void step() override {
    if (begun()) job_.note_begun();
    queue_.step();
    job_.step();
  }
  void signal_job(int number) override { job_.signal(number); }
  void poll_soon() override { queue_.soon(); }
  void detach() override { job_.detach(); }

 private:
  std::string name_;
  SlurmQueue& queue_;
  SlurmJob job_;
};

class SlurmLauncher : public Launcher {
 public:
  explicit SlurmLauncher(const LauncherSetting& setting)
      : machine_(setting.machine),
        programs_(setting.programs),
        yard_(setting.yard),
        script_(setting.yard.root() / "slurm-job.sh"),
        runs_(setting.yard.runs()) {}

  std::unique_ptr<RankGroup> launch(const LaunchSpec& command) override {
    const RankGroupFile group{.launcher = "slurm",
                              .job = slurm_job_name(command.directory, command.run_id),
                              .store = programs_.store,
                              .command = command,
                              .interface = machine_.interface};
    write_rank_group_file(group);
    return std::make_unique<SlurmRankGroup>(
        queue_, group,
        sbatch_arguments(machine_, group.job, command.directory, static_cast<int>(command.ranks.size()),
                         script_, {programs_.task.string(), command.directory.string()}));
  }

  std::unique_ptr<RankGroup> adopt(const fs::path& attempt_folder) override {
    const auto group = read_rank_group_file(attempt_folder);
    if (!group) throw InternalError("no ranks.json in " + attempt_folder.string());
    return std::make_unique<SlurmRankGroup>(queue_, *group, std::vector<std::string>{});
  }

  void prepare() override;

 private:
  void probe();
  void wait_for_probe(SlurmJob& job, const SharedDirCheck& probe);

  experiments::Machine machine_;
  Programs programs_;
  Yard yard_;
  fs::path script_, runs_;
  SlurmQueue queue_;
};

void add(std::vector<std::string>& arguments, const char* option, const std::string& value) {
  if (!value.empty()) arguments.push_back(std::string(option) + "=" + value);
}

}  // namespace

std::string slurm_job_name(const fs::path& attempt_folder, const std::string& run_id) {
  std::string name = "trainyard-" + run_id + "-" + sha256_hex(attempt_folder.string()).substr(0, 8);
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

std::vector<std::string> sbatch_arguments(const experiments::Machine& machine, const std::string& job_name,
                                          const fs::path& folder, int ranks, const fs::path& script,
                                          const std::vector<std::string>& task) {
  const std::string cores = "--cpus-per-task=" + std::to_string(machine.cpus_per_task);
  std::string log = (folder / slurm_log_name).string();  // sbatch replaces patterns such as %j in it
  for (auto at = log.find('%'); at != std::string::npos; at = log.find('%', at + 2)) log.insert(at, 1, '%');
  std::vector<std::string> arguments{"--parsable",
                                     "--no-requeue",
                                     "--export=ALL",
                                     "--job-name=" + job_name,
                                     "--output=" + log,
                                     "--chdir=" + folder.string(),
                                     cores,
                                     "--ntasks=" + std::to_string(ranks)};
  if (machine.nodes) add(arguments, "--nodes", std::to_string(std::min(*machine.nodes, ranks)));
  if (machine.gpus_per_task) add(arguments, "--gpus-per-task", std::to_string(*machine.gpus_per_task));
  if (machine.exclusive_host) arguments.emplace_back("--exclusive");
  add(arguments, "--partition", machine.partition);
  add(arguments, "--account", machine.account);
  add(arguments, "--qos", machine.qos);
  add(arguments, "--time", machine.time_limit);
  if (!machine.time_limit.empty())
    add(arguments, "--signal", "USR1@" + std::to_string(machine.signal_before_seconds));
  arguments.insert(arguments.end(), machine.options.begin(), machine.options.end());
  arguments.push_back(script.string());
  // srun does not inherit the cores of the job. By default it ends all tasks some time after the first one.
  arguments.insert(arguments.end(), {cores, "--kill-on-bad-exit=0", "--wait=0", "--input=none"});
  if (machine.gpus_per_task) add(arguments, "--gpus-per-task", std::to_string(*machine.gpus_per_task));
  arguments.insert(arguments.end(), task.begin(), task.end());
  return arguments;
}

namespace {

// Last line of a job's own output, from srun or the node.
std::string last_words(const fs::path& log) {
  const auto lines = lines_of(whole_file(log));
  return lines.empty() ? "" : ": " + lines.back();
}

void SlurmLauncher::prepare() {
  fs::create_directories(runs_);
  write_whole_file(script_, script_text);
  queue_.ask_now(std::chrono::seconds(60));
  if (spool_was_seen(yard_)) return;
  probe();
  note_spool_seen(yard_);
}

// Submits a job that writes a file into the folder of the runs.
void SlurmLauncher::probe() {
  const SharedDirCheck probe(runs_);
  experiments::Machine machine = machine_;
  machine.exclusive_host = false;
  SlurmJob job(queue_, probe.job_name(),
               sbatch_arguments(machine, probe.job_name(), runs_, 1, script_, probe.task(programs_)));
  wait_for_probe(job, probe);
}

void SlurmLauncher::wait_for_probe(SlurmJob& job, const SharedDirCheck& probe) {
  auto over_since = SlurmQueue::Clock::time_point::max();
  while (true) {
    queue_.step();
    queue_.soon();
    job.step();
    if (probe.answered(programs_)) return job.detach();
    if (job.reason() == experiments::EndReason::not_started)
      throw UserError(job.why(), "correct [machine] in the experiment file");
    if (job.stage() == SlurmJob::Stage::over && over_since == SlurmQueue::Clock::time_point::max())
      over_since = SlurmQueue::Clock::now();
    if (over_since != SlurmQueue::Clock::time_point::max() &&
        SlurmQueue::Clock::now() - over_since > (job.completed() ? files_patience : failed_patience))
      throw UserError("a Slurm job should have written to " + runs_.string() +
                          ", but no file appeared here (" + job.why() + last_words(runs_ / slurm_log_name) +
                          ")",
                      share_the_spool);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::unique_ptr<Launcher> slurm_launcher(const LauncherSetting& setting) {
  if (setting.machine.allocation == "shared") return step_launcher(setting);
  return std::make_unique<SlurmLauncher>(setting);
}

// Step launcher: trainyard itself runs inside an allocation (salloc, or a batch script), and each run is an
// `srun` there. If trainyard is killed while the allocation stays, srun normally ends the step. A step that
// is left is adopted by the next orchestrator in the allocation.

namespace {

constexpr auto step_probe_patience = std::chrono::seconds(60);

class StepRankGroup : public ClusterRankGroup {
 public:
  // `srun`: null for a step that an earlier orchestrator started.
  StepRankGroup(SlurmQueue& queue, const RankGroupFile& group, std::unique_ptr<RankProcess> srun)
      : ClusterRankGroup(group.command),
        queue_(queue),
        name_(group.job),
        allocation_(group.allocation),
        log_(group.command.directory / slurm_log_name),
        srun_(std::move(srun)),
        adopted_(!srun_),
        since_(SlurmQueue::Clock::now()) {
    queue_.soon();
  }
  // Cancels the step, because a killed srun would leave it behind.
  ~StepRankGroup() override {
    if (ended_ || ending_well_) return;
    try {
      queue_.ask_now(std::chrono::seconds(5));
      if (const auto step = queue_.find(name_))
        ClientCommand(slurm_client("scancel", {"--signal=KILL", step->id})).wait(std::chrono::seconds(5));
    } catch (const std::exception&) {  // a destructor can do no more
    }
  }

  bool waiting() override { return !logs(); }
  std::string job() const override { return allocation_; }
  void add_end_fds(std::vector<int>& fds) const override {
    if (srun_ && !ended_) fds.push_back(srun_->end_fd());
  }
  nlohmann::ordered_json marks() const override {
    return {{"launcher", "slurm"}, {"allocation", allocation_}, {"job_name", name_}};
  }

 protected:
  std::optional<RankGroupEnd> over() override {
    if (!ended_) return std::nullopt;
    if (never_began(*ended_))
      return RankGroupEnd{EndReason::not_started, "srun: " + complaint({*ended_, whole_file(log_)})};
    return RankGroupEnd{preempted_if(ended_->signal != 0 && !signalled()),
                        "its step of Slurm job " + allocation_ + " has ended"};
  }
  void step() override {
    queue_.step();
    if (ended_) return;
    if (srun_) ended_ = srun_->poll();
    // without its srun, Slurm may still list a step after all of its tasks have ended
    const bool unknown = queue_.answered_at() > since_ && !queue_.find(name_);
    if (adopted_ && (all_ended() || unknown)) ended_ = ExitStatus{};
  }
  void signal_job(int number) override {
    queue_.soon();
    const auto known = queue_.find(name_);
    if (known)
      queue_.cancel({"--signal=" + std::to_string(number), known->id});
    else if (srun_ && !ended_)  // srun waits for resources, and no task runs
      srun_->signal(number);
  }
  void poll_soon() override { queue_.soon(); }
  void detach() override { ending_well_ = true; }

 private:
  SlurmQueue& queue_;
  std::string name_, allocation_;
  std::filesystem::path log_;
  std::unique_ptr<RankProcess> srun_;
  bool adopted_;
  SlurmQueue::Clock::time_point since_;
  std::optional<ExitStatus> ended_;
  bool ending_well_ = false;
};

class StepLauncher : public Launcher {
 public:
  StepLauncher(const LauncherSetting& setting, std::string allocation)
      : machine_(setting.machine),
        programs_(setting.programs),
        yard_(setting.yard),
        runs_(yard_.runs()),
        allocation_(std::move(allocation)),
        queue_(allocation_) {}

  std::unique_ptr<RankGroup> launch(const LaunchSpec& command) override {
    const RankGroupFile group{.launcher = "slurm",
                              .job = slurm_job_name(command.directory, command.run_id),
                              .store = programs_.store,
                              .command = command,
                              .allocation = allocation_,
                              .interface = machine_.interface};
    write_rank_group_file(group);
    const auto arguments =
        srun_arguments(machine_, allocation_, group.job, static_cast<int>(command.ranks.size()),
                       {programs_.task.string(), command.directory.string()});
    return std::make_unique<StepRankGroup>(queue_, group,
                                           start_process({.argv = slurm_client("srun", arguments),
                                                          .environment = {},
                                                          .cores = {},
                                                          .log = command.directory / slurm_log_name,
                                                          .folder = command.directory}));
  }

  std::unique_ptr<RankGroup> adopt(const std::filesystem::path& attempt_folder) override {
    const auto group = read_rank_group_file(attempt_folder);
    if (!group) throw InternalError("no ranks.json in " + attempt_folder.string());
    return std::make_unique<StepRankGroup>(queue_, *group, nullptr);
  }

  // Runs a step that writes a file into the folder of the runs.
  void prepare() override {
    std::filesystem::create_directories(runs_);
    if (spool_was_seen(yard_)) return;  // also because adopted steps may use all cores
    const SharedDirCheck probe(runs_);
    const auto said =
        ClientCommand(slurm_client("srun", srun_arguments(machine_, allocation_, probe.job_name(), 1,
                                                          probe.task(programs_))))
            .wait(step_probe_patience);
    if (!said) throw UserError("a step in allocation " + allocation_ + " did not run within a minute");
    if (!said->status.clean())
      throw UserError("srun: " + complaint(*said), "correct [machine] in the experiment file");
    if (!probe.answered(programs_))
      throw UserError("a step in allocation " + allocation_ + " should have written to " + runs_.string() +
                          ", but no file appeared here",
                      share_the_spool);
    note_spool_seen(yard_);
  }

 private:
  experiments::Machine machine_;
  Programs programs_;
  Yard yard_;
  std::filesystem::path runs_;
  std::string allocation_;
  SlurmQueue queue_;
};

}  // namespace

std::vector<std::string> srun_arguments(const experiments::Machine& machine, const std::string& allocation,
                                        const std::string& step_name, int ranks,
                                        const std::vector<std::string>& task) {
  std::vector<std::string> arguments{"--jobid=" + allocation,
                                     "--job-name=" + step_name,
                                     "--ntasks=" + std::to_string(ranks),
                                     "--cpus-per-task=" + std::to_string(machine.cpus_per_task),
                                     "--exact",
                                     "--kill-on-bad-exit=0",
                                     "--wait=0",
                                     "--input=none"};
  if (machine.nodes) arguments.push_back("--nodes=" + std::to_string(std::min(*machine.nodes, ranks)));
  if (machine.gpus_per_task) arguments.push_back("--gpus-per-task=" + std::to_string(*machine.gpus_per_task));
  arguments.insert(arguments.end(), machine.options.begin(), machine.options.end());
  arguments.insert(arguments.end(), task.begin(), task.end());
  return arguments;
}

std::string own_allocation() {
  const char* job = std::getenv("SLURM_JOB_ID");
  return job == nullptr ? "" : job;
}

std::unique_ptr<Launcher> step_launcher(const LauncherSetting& setting) {
  const std::string allocation = own_allocation();
  if (allocation.empty())
    throw UserError(
        "`[machine] allocation` is \"shared\", but trainyard does not run inside a Slurm allocation",
        "start it with `salloc … trainyard run …` or in a batch script, or leave `allocation` out");
  return std::make_unique<StepLauncher>(setting, allocation);
}

}  // namespace trainyard::orchestrator
