// Rank agent: one task of a cluster job, as `trainyard-rank` runs it once per rank.
//
// - It detects its rank and joins the rendezvous.
// - It starts the rank's program with torchrun's environment, and forwards signals to it.
// - It leaves no process behind, and records how the program ended.
//
// So ranks on a cluster behave as on one host, and the orchestrator needs only the states of its jobs. The
// store runs next to rank 0, and store_relay.h is the way to it from the other ranks. A job does not need the host that submitted it, which may restart.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "orchestrator/rank/rank_group_files.h"
#include "orchestrator/rank/rendezvous.h"

namespace trainyard::orchestrator {

// Position of a task, from the launcher's environment variables.
struct TaskPlace {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
};

// Tasks of host `index` in a list of tasks per host, as "2(x3),1". Empty if the list is malformed or too
// short.
std::optional<int> tasks_per_node(const std::string& text, int index);

// Runs the task to its end. Returns its exit code: that of the rank's program, or 128 + signal.
int run_rank_task(const std::filesystem::path& attempt_folder);

// Variables of torchrun, by which a rank's program finds its position and its peers. All ranks are clients of
// `store`, except a single foreign rank, which creates its own store if it needs one.
std::map<std::string, std::string> torchrun_environment(const LaunchSpec& spec, const TaskPlace& place,
                                                        const StoreAddress& store);

}  // namespace trainyard::orchestrator
