// What a launcher starts: the commands of all ranks of one attempt.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/rank/process.h"

namespace trainyard::orchestrator {

// All ranks of one attempt. Their commands lack what the launcher adds: torchrun's variables.
struct GangCommand {
  std::filesystem::path directory;  // the attempt's
  std::string run_id;               // "<key>/<attempt>"
  std::string token;                // in the environment of each of its processes, see leftovers.h
  bool foreign = false;             // its ranks are a program of the user's, which gets a store of its own
  std::vector<RankCommand> ranks;
};

}  // namespace trainyard::orchestrator
