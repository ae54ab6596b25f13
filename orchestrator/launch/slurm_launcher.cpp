#include "orchestrator/launch/slurm_launcher.h"

#include <algorithm>
#include <cstdlib>

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

// A run as an `srun` in the allocation that trainyard itself runs in (salloc, or a batch script). If trainyard is
// killed while the allocation stays, srun normally ends the step. A step that is left is adopted by the next
// orchestrator in the allocation.
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
  bool launcher_ends_ranks() const override { return adopted_; }  // srun was killed with the orchestrator

 private:
  SlurmQueue& queue_;
  std::string name_, allocation_;
  fs::path log_;
  std::unique_ptr<RankProcess> srun_;
  bool adopted_;
  SlurmQueue::Clock::time_point since_;
  std::optional<ExitStatus> ended_;
  bool ending_well_ = false;
};

class SlurmLauncher : public Launcher {
 public:
  // `allocation`: runs are steps of this job. Empty: each run is a job of its own.
  SlurmLauncher(const LauncherSetting& setting, std::string allocation)
      : machine_(setting.machine),
        programs_(setting.programs),
        script_(setting.yard.root() / "slurm-job.sh"),
        allocation_(std::move(allocation)),
        queue_(allocation_) {}

  void prepare() override {
    write_whole_file(script_, script_text);
    queue_.ask_now(std::chrono::seconds(60));
  }

  std::unique_ptr<RankGroup> launch(const LaunchSpec& command) override {
    const RankGroupFile group{.launcher = "slurm",
                              .job = slurm_job_name(command.directory, command.run_id),
                              .store = programs_.store,
                              .command = command,
                              .allocation = allocation_,
                              .interface = machine_.interface};
    write_rank_group_file(group);
    const int ranks = static_cast<int>(command.ranks.size());
    const std::vector<std::string> task{programs_.task.string(), command.directory.string()};
    if (allocation_.empty())
      return std::make_unique<SlurmRankGroup>(
          queue_, group, sbatch_arguments(machine_, group.job, command.directory, ranks, script_, task));
    const auto arguments = srun_arguments(machine_, allocation_, group.job, ranks, task);
    return std::make_unique<StepRankGroup>(queue_, group,
                                           start_process({.argv = slurm_client("srun", arguments),
                                                          .environment = {},
                                                          .cores = {},
                                                          .log = command.directory / slurm_log_name,
                                                          .folder = command.directory}));
  }

  std::unique_ptr<RankGroup> adopt(const fs::path& attempt_folder) override {
    const auto group = read_rank_group_file(attempt_folder);
    if (!group) throw InternalError("no ranks.json in " + attempt_folder.string());
    if (allocation_.empty())
      return std::make_unique<SlurmRankGroup>(queue_, *group, std::vector<std::string>{});
    return std::make_unique<StepRankGroup>(queue_, *group, nullptr);
  }

 private:
  experiments::Machine machine_;
  Programs programs_;
  fs::path script_;
  std::string allocation_;
  SlurmQueue queue_;
};

void add(std::vector<std::string>& arguments, const char* option, const std::string& value) {
  if (!value.empty()) arguments.push_back(std::string(option) + "=" + value);
}

}  // namespace

std::string slurm_job_name(const fs::path& attempt_folder, const std::string& run_id) {
  std::string name = "trainyard-" + run_id + "-" + sha256_hex(attempt_folder.string()).substr(0, 8);
  std::ranges::replace(name, '/', '-');
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

std::unique_ptr<Launcher> slurm_launcher(const LauncherSetting& setting) {
  const bool shared = setting.machine.allocation == "shared";
  const std::string allocation = shared ? own_allocation() : "";
  if (shared && allocation.empty())
    throw UserError(
        "`[machine] allocation` is \"shared\", but trainyard does not run inside a Slurm allocation",
        "start it with `salloc … trainyard run …` or in a batch script, or leave `allocation` out");
  return std::make_unique<SlurmLauncher>(setting, allocation);
}

}  // namespace trainyard::orchestrator
