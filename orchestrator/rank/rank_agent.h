// One task of a cluster's job: what `trainyard-rank` does. The cluster starts it once a rank; it finds out
// which rank it is, has the ranks meet, starts the rank's program with torchrun's environment, hands signals
// on to it, leaves nothing of it behind, and writes down how it ended. So ranks behave on a cluster as they
// do on one host, and the orchestrator needs no more of the cluster than the states of its jobs.
//
// The store runs beside rank 0: a job needs nothing of the host that submitted it, which may end and come
// back.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "orchestrator/rank/rank_group_files.h"
#include "orchestrator/rank/rendezvous.h"

namespace trainyard::orchestrator {

// A task's place, as the launcher's own variables say.
struct TaskPlace {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
};

// Of this process, started by `launcher` ("slurm", "mpi"). UserError names the variable that is missing or
// wrong.
TaskPlace task_place(const std::string& launcher);

// "2(x3),1": tasks of each host, of the one at `index`; nothing where it is not of that form or has fewer.
std::optional<int> tasks_per_node(const std::string& text, int index);

// To its end. Returns the exit code of the task: that of the rank's program, or 128 + signal.
int run_rank_task(const std::filesystem::path& attempt_folder);

// The variables by which a rank's program finds its place and its peers: those of torchrun.

// A foreign rank that is alone makes its own store where it wants one; all others are clients of `store`.
std::map<std::string, std::string> torchrun_environment(const LaunchSpec& gang, const TaskPlace& place,
                                                        const StoreAddress& store);

}  // namespace trainyard::orchestrator
