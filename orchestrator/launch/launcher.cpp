#include "orchestrator/launch/launcher.h"

#include <array>
#include <csignal>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "orchestrator/launch/cluster_rank_group.h"
#include "orchestrator/launch/slurm_launcher.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/rank/process.h"
#include "orchestrator/rank/rank_agent.h"
#include "orchestrator/rank/rendezvous.h"
#include "orchestrator/rank/supervised_ranks.h"

namespace trainyard::orchestrator {

std::unique_ptr<RankGroup> Launcher::adopt(const std::filesystem::path& attempt_folder) {
  throw InternalError("this launcher cannot reattach to " + attempt_folder.string());
}

void apply_defaults(experiments::Machine& machine) {
  if (machine.launcher == "slurm" && machine.allocation.empty())
    machine.allocation = own_allocation().empty() ? "job" : "shared";
}

// Local launcher: ranks are processes on this host, under a supervisor. The store of trainyard's own ranks is a file in the
// attempt's folder. Foreign programs get a TCPStore on the loopback interface, as torchrun gives them.

namespace {

// Starts the store and the ranks of an attempt. A single rank needs no store, and a single foreign rank may
// serve its own, on a free port.
LocalProcesses start_here(const LaunchSpec& spec, const std::filesystem::path& store_program,
                          const std::filesystem::path& store_file) {
  LocalProcesses processes;
  const auto ranks = static_cast<int>(spec.ranks.size());
  StoreAddress address{"127.0.0.1", "0"};
  if (ranks > 1 && spec.foreign) {
    processes.store.emplace(store_program, spec.directory / "store.log");
    address = processes.store->address();
  }
  for (int rank = 0; rank < ranks; ++rank) {
    RankCommand command = spec.ranks[static_cast<std::size_t>(rank)];
    command.environment.merge(torchrun_environment(spec, {rank, ranks, rank, ranks}, address));
    if (!store_file.empty()) command.environment["TRAINYARD_STORE"] = store_file.string();
    processes.ranks.push_back(start_process(command));
  }
  return processes;
}

class LocalRankGroup : public RankGroup {
 public:
  LocalRankGroup(const LaunchSpec& spec, const std::filesystem::path& store_program,
                 std::shared_ptr<std::set<int>> supervisors)
      : store_file_(spec.ranks.size() > 1 && !spec.foreign ? make_store_file(spec.directory) : ""),
        ranks_({spec.directory, std::move(supervisors)},
               [&] { return start_here(spec, store_program, store_file_); }),
        marks_{{"pids", ranks_.pids()}, {"supervisor", ranks_.supervisor()}} {}
  LocalRankGroup(const LocalRankGroup&) = delete;
  LocalRankGroup& operator=(const LocalRankGroup&) = delete;
  ~LocalRankGroup() override {
    std::error_code ignored;
    if (!store_file_.empty()) std::filesystem::remove(store_file_, ignored);
  }

  std::optional<ExitStatus> poll(int rank) override { return ranks_.poll(rank); }
  void signal(int number) override { ranks_.signal(number); }

  std::optional<RankGroupEnd> end() override {
    const auto ended = ranks_.end();
    if (!ended) return std::nullopt;
    if (!ended->supervisor_failed) return RankGroupEnd{{}, "", ended->leftovers};
    return RankGroupEnd{experiments::EndReason::failed,
                        "the supervisor of its ranks ended: " + to_text(*ended->supervisor_failed),
                        ended->leftovers};
  }

  nlohmann::ordered_json marks() const override { return marks_; }

 private:
  std::filesystem::path store_file_;
  SupervisedRanks ranks_;
  nlohmann::ordered_json marks_;
};

class LocalLauncher : public Launcher {
 public:
  explicit LocalLauncher(const Programs& programs) : store_program_(programs.store) {}

  std::unique_ptr<RankGroup> launch(const LaunchSpec& command) override {
    return std::make_unique<LocalRankGroup>(command, store_program_, supervisors_);
  }

 private:
  std::filesystem::path store_program_;
  std::shared_ptr<std::set<int>> supervisors_ = std::make_shared<std::set<int>>();
};

}  // namespace

std::unique_ptr<Launcher> local_launcher(const Programs& programs) {
  return std::make_unique<LocalLauncher>(programs);
}

// MPI launcher: ranks are tasks of `mpirun`, which starts them on the hosts of its host file. mpirun is a
// process on this host. It dies with the orchestrator, and its tasks on all hosts die with it.

namespace {

namespace fs = std::filesystem;

constexpr const char* mpirun_log = "mpirun.log";

// Settings of Open MPI. The orchestrator handles failed ranks itself. Ranks are not bound, because all ranks
// of a host would share its first core. Other kinds of mpirun ignore these variables.
const std::map<std::string, std::string> open_mpi_settings{{"OMPI_MCA_orte_abort_on_non_zero_status", "0"},
                                                           {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                                           {"OMPI_MCA_odls_base_sigkill_timeout", "3"}};

// First sentence between the lines of dashes in the output of mpirun.
std::string mpirun_complaint(const fs::path& log) {
  for (const std::string& line : nonempty_lines(whole_file(log)))
    if (line.find_first_not_of("- ") != std::string::npos) return line;
  return "it printed nothing";
}

class MpiRankGroup : public ClusterRankGroup {
 public:
  MpiRankGroup(const LaunchSpec& spec, std::unique_ptr<RankProcess> process)
      : ClusterRankGroup(spec), log_(spec.directory / mpirun_log), process_(std::move(process)) {}

  nlohmann::ordered_json marks() const override { return {{"launcher", "mpi"}, {"pids", {process_->pid()}}}; }

 protected:
  std::optional<RankGroupEnd> over() override {
    if (!ended_) return std::nullopt;
    if (never_began(*ended_))
      return RankGroupEnd{EndReason::not_started, "mpirun: " + mpirun_complaint(log_)};
    return RankGroupEnd{preempted_if(ended_->signal != 0 && !signalled()),
                        "mpirun ended: " + to_text(*ended_)};
  }
  void step() override {
    if (!ended_) ended_ = process_->poll();
  }
  void signal_job(int number) override {
    if (!ended_)
      process_->signal(number == SIGTERM ? SIGUSR2 : number);  // mpirun forwards SIGUSR2 to its tasks
  }

 private:
  fs::path log_;
  std::unique_ptr<RankProcess> process_;
  std::optional<ExitStatus> ended_;
};

class MpiLauncher : public Launcher {
 public:
  explicit MpiLauncher(const LauncherSetting& setting)
      : machine_(setting.machine), programs_(setting.programs) {
    if (!machine_.hosts.empty()) hosts_ = setting.folder / machine_.hosts;
    if (!hosts_.empty() && !fs::is_regular_file(hosts_))
      throw UserError("`[machine] hosts` is " + hosts_.string() + ", but there is no such file");
  }

  std::unique_ptr<RankGroup> launch(const LaunchSpec& command) override {
    write_rank_group_file({.launcher = "mpi",
                           .job = "",
                           .store = programs_.store,
                           .command = command,
                           .interface = machine_.interface});
    std::vector<std::string> argv{"mpirun", "-np", std::to_string(command.ranks.size())};
    if (!hosts_.empty()) argv.insert(argv.end(), {"--hostfile", hosts_.string()});
    argv.insert(argv.end(), machine_.options.begin(), machine_.options.end());
    argv.insert(argv.end(), {programs_.task.string(), command.directory.string()});
    auto environment = open_mpi_settings;
    environment[token_variable] = command.token;
    return std::make_unique<MpiRankGroup>(command, start_process({.argv = std::move(argv),
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

std::span<const LauncherKind> launchers() {
  static const std::array<LauncherKind, 3> rows{
      {{"local", [](const LauncherSetting& setting) { return local_launcher(setting.programs); }},
       {"slurm", slurm_launcher},
       {"mpi", [](const LauncherSetting& setting) -> std::unique_ptr<Launcher> {
          return std::make_unique<MpiLauncher>(setting);
        }}}};
  return rows;
}

std::unique_ptr<Launcher> make_launcher(const LauncherSetting& setting) {
  for (const LauncherKind& kind : launchers())
    if (kind.name == setting.machine.launcher) return kind.make(setting);
  throw InternalError("launcher \"" + setting.machine.launcher + "\" is not in the table of launchers");
}

}  // namespace trainyard::orchestrator
