#include "experiments/machine.h"

#include <array>

namespace trainyard::experiments {

std::span<const MachineKey> machine_keys() {
  static const std::array<MachineKey, 19> rows{{
      {"launcher", "one of \"local\", \"slurm\", \"mpi\"", "\"local\"", "",
       "what starts the ranks: this host, jobs of Slurm, or mpirun"},
      {"accelerator", "one of \"auto\", \"cpu\", \"cuda\"", "\"auto\"", "",
       "what ranks train on; auto: GPUs where the host has some and LibTorch is a CUDA build, else CPU "
       "cores; "
       "on a cluster GPUs where gpus_per_task asks for them"},
      {"devices", "an integer >= 1 or \"auto\"", "\"auto\"", "local",
       "most devices of this host at a time: GPUs, or groups of cores. A group has a core for each of "
       "`threads`; without `threads` the groups are equal. auto: all GPUs; as many groups as a run has ranks "
       "and the host has cores for, or without `threads` min(2, cores)"},
      {"exclusive", "one of \"host\", \"devices\"", "\"host\"", "",
       "a timed run has its hosts to itself; \"devices\" packs runs and marks their times"},
      {"communicator", "one of \"auto\", \"gloo\", \"nccl\"", "\"auto\"", "",
       "how ranks exchange gradients and activations; auto: nccl where each has a GPU of its own, else "
       "memory "
       "where all of a run are on one host, else gloo"},
      {"progress_timeout", "a number of seconds >= 0 (0: none)", "1800", "",
       "a run without any progress for so long has failed"},
      {"spool", "a folder", "", "slurm mpi",
       "folder that all hosts share: holds runs/ in place of the yard's own; the database stays in the yard"},
      {"allocation", "one of \"job\", \"shared\"", "", "slurm",
       "a job for each run, or one allocation for all of them; default: shared where trainyard itself runs "
       "inside one, else job"},
      {"jobs", "an integer >= 1", "100", "slurm", "most jobs in the queue at a time"},
      {"partition", "a text", "", "slurm", "sbatch --partition"},
      {"account", "a text", "", "slurm", "sbatch --account"},
      {"qos", "a text", "", "slurm", "sbatch --qos"},
      {"time_limit", "\"MINUTES\", \"H:MM:SS\" or \"D-HH:MM:SS\"", "", "slurm",
       "of each job, as sbatch --time takes it"},
      {"signal_before", "an integer of seconds in 0 … 65535", "120", "slurm",
       "ranks are told to end so long before the time limit"},
      {"nodes", "an integer >= 1", "", "slurm", "hosts that a run is spread over, as far as it has ranks"},
      {"cpus_per_task", "an integer >= 1", "1", "slurm mpi",
       "cores of each rank, and its threads unless `threads` of a run says fewer"},
      {"gpus_per_task", "an integer >= 1", "", "slurm",
       "sbatch --gpus-per-task; each rank trains on one of them"},
      {"hosts", "a file", "", "mpi", "host file of mpirun: a host a line"},
      {"options", "a list of texts", "[]", "slurm mpi",
       "further arguments of sbatch (each \"--name\" or \"--name=value\") or mpirun, as they stand"},
  }};
  return rows;
}

}  // namespace trainyard::experiments
