// Where the ranks of a job meet: rank 0's host serves the store and says by which names and numbers it might
// be reached; each rank takes the first that it reaches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orchestrator/rank/gang_file.h"
#include "orchestrator/rank/store.h"

namespace trainyard::orchestrator {

// This host's name, then the numbers of its networks; last 127.0.0.1, for tasks beside the store.
std::vector<std::string> own_addresses();

// The first of the addresses that takes a connection; nothing where none does.
std::optional<StoreAddress> reachable(const Meeting& meeting);

}  // namespace trainyard::orchestrator
