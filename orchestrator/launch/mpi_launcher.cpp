// Ranks as tasks of `mpirun`, which starts them on the hosts of its host file and ends with them. It is a
// process of this host and dies with the orchestrator; its tasks, wherever they are, die with it.
#include <csignal>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/whole_file.h"
#include "orchestrator/launch/launcher.h"
#include "orchestrator/launch/task_gang.h"
#include "orchestrator/rank/client_command.h"
#include "orchestrator/rank/leftovers.h"

namespace trainyard::orchestrator {

namespace {

namespace fs = std::filesystem;

constexpr const char* mpirun_log = "mpirun.log";

// A rank that fails is the orchestrator's to judge; binding is not: ranks of one host would share its first
// core. As variables, which other kinds of mpirun than Open MPI's do not mind.
const std::map<std::string, std::string> open_mpi_settings{{"OMPI_MCA_orte_abort_on_non_zero_status", "0"},
                                                           {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                                           {"OMPI_MCA_odls_base_sigkill_timeout", "3"}};

// What it complains about: the first sentence between its lines of dashes.
std::string mpirun_complaint(const fs::path& log) {
  for (const std::string& line : lines_of(whole_file(log)))
    if (line.find_first_not_of("- ") != std::string::npos) return line;
  return "it said nothing";
}

class MpiGang : public TaskGang {
 public:
  MpiGang(const GangCommand& gang, std::unique_ptr<RankProcess> process)
      : TaskGang(gang.directory, static_cast<int>(gang.ranks.size())),
        log_(gang.directory / mpirun_log),
        first_rank_log_(gang.ranks.front().log),
        process_(std::move(process)),
        mark_(mark_of(process_->pid())) {}

  void add_end_fds(std::vector<int>& fds) const override {
    if (!ended_) fds.push_back(process_->end_fd());
  }
  nlohmann::ordered_json marks() const override {
    return {
        {"launcher", "mpi"}, {"pids", {process_->pid()}}, {"start_ticks", {mark_ ? mark_->start_ticks : 0}}};
  }

 protected:
  std::optional<Over> over() override {
    if (!ended_) return std::nullopt;
    const bool never_began = ended_->code > 0 && !fs::exists(first_rank_log_) && none_ended();
    if (never_began) return Over{.refused = true, .why = "mpirun: " + mpirun_complaint(log_)};
    return Over{.taken_away = ended_->signal != 0 && !told(), .why = "mpirun ended: " + to_text(*ended_)};
  }
  void step() override {
    if (!ended_) ended_ = process_->poll();
  }
  void signal_job(int number) override {
    if (!ended_)
      process_->signal(number == SIGTERM ? SIGUSR2 : number);  // which mpirun hands on to its tasks
  }

 private:
  fs::path log_, first_rank_log_;
  std::unique_ptr<RankProcess> process_;
  std::optional<ProcessMark> mark_;
  std::optional<ExitStatus> ended_;
};

class MpiLauncher : public Launcher {
 public:
  explicit MpiLauncher(const LauncherSetting& setting)
      : machine_(setting.machine), programs_(setting.programs) {
    if (!machine_.hosts.empty()) hosts_ = setting.folder / machine_.hosts;
    if (!hosts_.empty() && !fs::is_regular_file(hosts_))
      throw UserError("`hosts` of [machine] is " + hosts_.string() + ", and there is no such file");
  }

  std::unique_ptr<Gang> launch(const GangCommand& command) override {
    write_gang_file({"mpi", "", programs_.store, command});
    std::vector<std::string> argv{"mpirun", "-np", std::to_string(command.ranks.size())};
    if (!hosts_.empty()) argv.insert(argv.end(), {"--hostfile", hosts_.string()});
    argv.insert(argv.end(), machine_.options.begin(), machine_.options.end());
    argv.insert(argv.end(), {programs_.task.string(), command.directory.string()});
    auto environment = open_mpi_settings;
    environment[token_variable] = command.token;
    return std::make_unique<MpiGang>(command, start_process({.argv = std::move(argv),
                                                             .environment = std::move(environment),
                                                             .cores = {},
                                                             .log = command.directory / mpirun_log,
                                                             .folder = command.directory}));
  }

 private:
  experiments::Machine machine_;
  Programs programs_;
  fs::path hosts_;
};

}  // namespace

std::unique_ptr<Launcher> mpi_launcher(const LauncherSetting& setting) {
  return std::make_unique<MpiLauncher>(setting);
}

}  // namespace trainyard::orchestrator
