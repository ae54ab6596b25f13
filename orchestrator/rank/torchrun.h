// The variables by which a rank's program finds its place and its peers: those of torchrun.
#pragma once

#include <map>
#include <string>

#include "orchestrator/rank/gang_command.h"
#include "orchestrator/rank/rank_task.h"
#include "orchestrator/rank/store.h"

namespace trainyard::orchestrator {

// A foreign rank that is alone makes its own store where it wants one; all others are clients of `store`.
std::map<std::string, std::string> torchrun_environment(const GangCommand& gang, const TaskPlace& place,
                                                        const StoreAddress& store);

}  // namespace trainyard::orchestrator
