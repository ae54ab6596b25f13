// The programs that the orchestrator starts, found beside the running binary (build tree and installation),
// and what they say of themselves.
#pragma once

#include <filesystem>
#include <string>

#include "experiments/design/experiment.h"
#include "experiments/protocol/launch.h"
#include "experiments/run/machine.h"
#include "orchestrator/resources/devices.h"

namespace trainyard::orchestrator {

struct Programs {
  std::filesystem::path runner;     // trainyard-runner
  std::filesystem::path store;      // trainyard-store
  std::filesystem::path task = {};  // trainyard-rank
};

// Beside this executable, else in ../libexec/trainyard; UserError names the places looked in.
Programs find_programs();

// UserError, with the strategy's place in the file, where the program of a foreign arm is not on this host.
void check_commands(const experiments::Experiment& experiment);

// What `trainyard-runner --version --json` says, as it stands on this host.
struct RunnerFacts {
  experiments::Circumstances circumstances;  // host, CPU model and versions, with one thread per rank
  std::string cuda;                          // that it was built for; empty: CPU only
  std::vector<Gpu> gpus;                     // that it sees
};
RunnerFacts runner_facts(const Programs& programs);

// The same where ranks run on hosts that the launcher chooses: those have the launcher's name.
experiments::Circumstances elsewhere(experiments::Circumstances here, const experiments::Machine& machine);

}  // namespace trainyard::orchestrator
