#include "orchestrator/launch/slurm_launcher.h"

#include <algorithm>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "base/whole_file.h"
#include "orchestrator/launch/slurm_job.h"
#include "orchestrator/launch/spool_probe.h"
#include "orchestrator/launch/task_gang.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

// The only shell text there is: everything that varies comes as arguments.
constexpr const char* script_text = "#!/bin/sh\nexec srun \"$@\"\n";
constexpr auto files_patience = std::chrono::seconds(30);  // until a job's file shows up here
constexpr auto failed_patience = std::chrono::seconds(5);  // where the job has failed anyway

class SlurmGang : public TaskGang {
 public:
  SlurmGang(SlurmQueue& queue, const GangFile& gang, std::vector<std::string> submit)
      : TaskGang(gang.command.directory, static_cast<int>(gang.command.ranks.size())),
        name_(gang.job),
        queue_(queue),
        job_(queue, gang.job, std::move(submit)) {}

  bool waiting() override {
    return job_.stage() == SlurmJob::Stage::submitting || job_.stage() == SlurmJob::Stage::queued;
  }
  std::string job() const override { return job_.id(); }
  nlohmann::ordered_json marks() const override { return {{"launcher", "slurm"}, {"job_name", name_}}; }

 protected:
  std::optional<Over> over() override {
    const auto stage = job_.stage();
    if (stage != SlurmJob::Stage::over && stage != SlurmJob::Stage::refused) return std::nullopt;
    const bool by_others = job_.lost() || (job_.cancelled() && !told());
    const std::string id = job_.id().empty() ? "" : "its Slurm job " + job_.id() + ": ";
    return Over{.refused = stage == SlurmJob::Stage::refused,
                .taken_away = by_others,
                .timed_out = job_.timed_out(),
                .over_limits = job_.over_limits(),
                .why = id + job_.why()};
  }
  void step() override {
    if (begun()) job_.note_begun();
    queue_.step();
    job_.step();
  }
  void signal_job(int number) override { job_.signal(number); }
  void wants_to_know() override { queue_.soon(); }
  void let_go() override { job_.let_go(); }

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

  std::unique_ptr<Gang> launch(const GangCommand& command) override {
    const GangFile gang{"slurm", slurm_job_name(command.directory, command.run_id), programs_.store, command};
    write_gang_file(gang);
    return std::make_unique<SlurmGang>(
        queue_, gang,
        sbatch_arguments(machine_, gang.job, command.directory, static_cast<int>(command.ranks.size()),
                         script_, {programs_.task.string(), command.directory.string()}));
  }

  std::unique_ptr<Gang> adopt(const fs::path& attempt_folder) override {
    const auto gang = read_gang_file(attempt_folder);
    if (!gang) throw InternalError("no gang.json in " + attempt_folder.string());
    return std::make_unique<SlurmGang>(queue_, *gang, std::vector<std::string>{});
  }

  void prepare() override;

 private:
  void probe();
  void wait_for_probe(SlurmJob& job, const SpoolProbe& probe);

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
  std::string name = "trainyard-" + run_id + "-" + models::sha256_hex(attempt_folder.string()).substr(0, 8);
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

std::vector<std::string> sbatch_arguments(const experiments::Machine& machine, const std::string& job_name,
                                          const fs::path& folder, int ranks, const fs::path& script,
                                          const std::vector<std::string>& task) {
  const std::string cores = "--cpus-per-task=" + std::to_string(machine.cpus_per_task);
  std::string log = (folder / slurm_log_name).string();  // in its name sbatch replaces what follows a %
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
  // srun does not take the cores from the job, and would end all tasks some time after the first one
  arguments.insert(arguments.end(), {cores, "--kill-on-bad-exit=0", "--wait=0", "--input=none"});
  if (machine.gpus_per_task) add(arguments, "--gpus-per-task", std::to_string(*machine.gpus_per_task));
  arguments.insert(arguments.end(), task.begin(), task.end());
  return arguments;
}

namespace {

// The last words of a job's own output: what srun or the node had to say.
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

// A job that writes a file where the runs will lie.
void SlurmLauncher::probe() {
  const SpoolProbe probe(runs_);
  experiments::Machine machine = machine_;
  machine.exclusive_host = false;
  SlurmJob job(queue_, probe.job_name(),
               sbatch_arguments(machine, probe.job_name(), runs_, 1, script_, probe.task(programs_)));
  wait_for_probe(job, probe);
}

void SlurmLauncher::wait_for_probe(SlurmJob& job, const SpoolProbe& probe) {
  auto over_since = SlurmQueue::Clock::time_point::max();
  while (true) {
    queue_.step();
    queue_.soon();
    job.step();
    if (probe.answered(programs_)) return job.let_go();
    if (job.stage() == SlurmJob::Stage::refused)
      throw UserError(job.why(), "mend [machine] of the experiment file");
    if (job.stage() == SlurmJob::Stage::over && over_since == SlurmQueue::Clock::time_point::max())
      over_since = SlurmQueue::Clock::now();
    if (over_since != SlurmQueue::Clock::time_point::max() &&
        SlurmQueue::Clock::now() - over_since > (job.completed() ? files_patience : failed_patience))
      throw UserError("a job of Slurm was to write into " + runs_.string() + ", and nothing came here (" +
                          job.why() + last_words(runs_ / slurm_log_name) + ")",
                      share_the_spool);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::unique_ptr<Launcher> slurm_launcher(const LauncherSetting& setting) {
  if (setting.machine.allocation == "shared") return step_launcher(setting);
  return std::make_unique<SlurmLauncher>(setting);
}

}  // namespace trainyard::orchestrator
