// [machine]: where an experiment runs. The same file runs under every launcher; only this section differs.
// Its keys: experiments/config/machine_keys.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::experiments {

// A launcher as [machine] knows it: one row per launcher. How it starts ranks is in
// orchestrator/launch/launcher.h.
struct LauncherRules {
  std::string name;
  bool on_this_host = false;  // ranks are processes of this host, and lease its devices
  bool shares_hosts = true;   // runs may be on a host together: `exclusive = "devices"`
  bool has_jobs = false;      // a run may be a job, which has hosts of its own
  std::string program = "";   // that takes `options`
  bool long_options = false;  // … which are --name or --name=value, and names may be cut short
  std::vector<std::string> own_options = {};  // that trainyard sets itself
};
std::span<const LauncherRules> launcher_rules();
const LauncherRules* rules_or_null(std::string_view launcher);
bool is_own_option(const LauncherRules& launcher, const std::string& option);  // "--chdir=/tmp"

struct Machine {
  std::string launcher = "local";
  std::string accelerator = "auto";  // "cpu", "cuda"; auto: GPUs where there are some, else CPU cores
  std::optional<int> devices;        // of this host; empty = "auto": all GPUs, or min(2, cores)
  bool exclusive_host = true;        // `exclusive = "host"`; false: "devices"
  std::string communicator = "auto";
  // A run without any progress for so long has failed; 0: it may stand still for ever.
  double progress_timeout_seconds = 1800;

  std::string spool;       // folder on a file system that all hosts share; empty: the yard lies on one
  std::string allocation;  // slurm: "job" a run, or "shared" by all; empty: "shared" inside an allocation
  int jobs = 100;          // slurm: most of them in the queue at a time
  std::string partition, account, qos, time_limit;  // slurm; empty: the cluster's own
  int signal_before_seconds = 120;                  // slurm: ranks are told to end so long before the limit
  std::optional<int> nodes;                         // slurm: most hosts of a run
  int cpus_per_task = 1;
  std::optional<int> gpus_per_task;
  std::string hosts;                 // mpi: its host file
  std::vector<std::string> options;  // further ones of sbatch or mpirun, one argument each

  const LauncherRules& rules() const;
  bool on_this_host() const { return rules().on_this_host; }
  // Whether ranks on other hosts have GPUs: those that they are given, not any that happen to be there.
  bool gpus_elsewhere() const {
    return !on_this_host() && (accelerator == "cuda" || (accelerator == "auto" && gpus_per_task));
  }
  // Jobs have hosts of their own; all else shares what there is.
  bool one_at_a_time() const {
    const bool own_hosts = rules().has_jobs && allocation != "shared";
    return !rules().shares_hosts || (exclusive_host && !own_hosts);
  }
};

}  // namespace trainyard::experiments
