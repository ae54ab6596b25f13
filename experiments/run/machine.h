// [machine]: where an experiment runs. The same file runs under every launcher; only this section differs.
// Its keys: experiments/config/machine_keys.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trainyard::experiments {

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

  bool on_this_host() const { return launcher == "local"; }
  // Whether ranks on other hosts have GPUs: those that they are given, not any that happen to be there.
  bool gpus_elsewhere() const {
    return !on_this_host() && (accelerator == "cuda" || (accelerator == "auto" && gpus_per_task));
  }
  // Jobs have hosts of their own; all else shares what there is.
  bool one_at_a_time() const {
    return launcher == "mpi" || (exclusive_host && !(launcher == "slurm" && allocation != "shared"));
  }
};

}  // namespace trainyard::experiments
