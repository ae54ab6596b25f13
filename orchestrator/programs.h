// The programs that the orchestrator starts, found beside the running binary (build tree and installation),
// and what they say of themselves.
#pragma once

#include <filesystem>
#include <string>

#include "experiments/launch.h"
#include "experiments/machine.h"

namespace trainyard::orchestrator {

struct Programs {
  std::filesystem::path runner;     // trainyard-runner
  std::filesystem::path store;      // trainyard-store
  std::filesystem::path task = {};  // trainyard-rank
};

// Beside this executable, else in ../libexec/trainyard; UserError names the places looked in.
Programs find_programs();

// Host, processor and the runner's versions (`trainyard-runner --version --json`), with one thread per rank.
experiments::Circumstances machine_circumstances(const Programs& programs);

// The same where ranks run on hosts that the launcher chooses: those have the launcher's name.
experiments::Circumstances elsewhere(experiments::Circumstances here, const experiments::Machine& machine);

}  // namespace trainyard::orchestrator
