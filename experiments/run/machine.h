// The section [machine]: launcher, hosts and devices of an experiment. It is the only section that depends on
// the launcher. The keys are in experiments/config/machine_keys.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trainyard::experiments {

// The rules of a launcher for [machine]. How it starts ranks is in orchestrator/launch/launcher.h.
struct LauncherRules {
  std::string name;
  bool on_this_host = false;  // ranks are processes of this host and lease its devices
  bool shares_hosts = true;   // runs may share a host: `exclusive = "devices"`
  bool has_jobs = false;      // a run may be a job with its own hosts
  std::string program = "";   // program that gets `options`
  bool long_options = false;  // options are --name or --name=value, and names may be abbreviated
  std::vector<std::string> own_options = {};  // options that only trainyard sets
};
std::span<const LauncherRules> launcher_rules();
bool is_own_option(const LauncherRules& launcher, const std::string& option);  // "--chdir=/tmp"

struct Machine {
  std::string launcher = "local";
  std::string accelerator = "auto";  // "cpu", "cuda"; auto: GPUs if present, else CPU cores
  std::optional<int> devices;        // most devices of this host; empty = "auto"
  bool exclusive_host = true;        // `exclusive = "host"`; false: "devices"
  std::string communicator = "auto";
  // A run that makes no progress for this time has failed. 0: no limit.
  double progress_timeout_seconds = 1800;

  std::string spool;       // folder that all hosts share; empty: the yard is shared
  std::string allocation;  // slurm: "job" or "shared"; empty: "shared" inside an allocation
  int jobs = 100;          // slurm: most jobs in the queue at a time
  std::string partition, account, qos, time_limit;  // slurm; empty: default of the cluster
  int signal_before_seconds = 120;                  // slurm: time from this signal to the time limit
  std::optional<int> nodes;                         // slurm: most hosts per run
  int cpus_per_task = 1;
  std::optional<int> gpus_per_task;
  std::string interface;             // network interface of the hosts, "ib0"; empty: that of the host's name
  std::string hosts;                 // mpi: host file
  std::vector<std::string> options;  // further arguments of sbatch or mpirun

  const LauncherRules& rules() const;
  bool on_this_host() const { return rules().on_this_host; }
  // Whether ranks on other hosts use GPUs. They use only GPUs that are assigned to them.
  bool gpus_elsewhere() const {
    return !on_this_host() && (accelerator == "cuda" || (accelerator == "auto" && gpus_per_task));
  }
  // Whether timed runs must run one after another. Jobs have their own hosts, all other runs share hosts.
  bool one_at_a_time() const {
    const bool own_hosts = rules().has_jobs && allocation != "shared";
    return !rules().shares_hosts || (exclusive_host && !own_hosts);
  }
};

}  // namespace trainyard::experiments
