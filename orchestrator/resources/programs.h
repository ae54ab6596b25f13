// Programs that the orchestrator starts, and what they report about themselves. They are next to the running
// binary in a build tree, or in ../libexec/trainyard in an installation.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/design/experiment.h"
#include "experiments/protocol/launch.h"
#include "experiments/run/machine.h"
#include "orchestrator/resources/devices.h"

namespace trainyard::orchestrator {

struct Programs {
  std::filesystem::path runner;     // trainyard-runner; empty if it is not needed and not there
  std::filesystem::path store;      // trainyard-store
  std::filesystem::path task = {};  // trainyard-rank
};

// Searches next to this executable, then in ../libexec/trainyard. UserError names both folders. `needs_runner`: false if
// all strategies are programs of the user.
Programs find_programs(bool needs_runner = true);

// The build of the runner, because two builds of one version may differ in speed: 12 hexadecimal digits, from these
// parts:
// - the content of the runner
// - per library of the runner: its name, size, first MiB and last MiB, because LibTorch is too large to be
//   read at each start. A file that cannot be read counts as empty.
// Libraries below /lib and /usr/lib are left out. Otherwise an update of the system would change the build.
std::string build_id(const std::filesystem::path& runner, const std::vector<std::string>& libraries);

// Throws UserError if the program of a foreign arm is not on this host. The error is at the strategy's place
// in the file.
void check_commands(const experiments::Experiment& experiment);

// A program that was asked for its version was killed, for example because memory ran out. The command was right.
class ProgramKilled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Output of `trainyard-runner --version --json` on this host.
struct RunnerFacts {
  // Host, CPU model, versions, build and environment, with one thread per rank.
  experiments::Circumstances circumstances;
  std::string cuda;       // CUDA version of the build; empty: CPU only
  std::vector<Gpu> gpus;  // that the runner sees
};
RunnerFacts runner_facts(const Programs& programs);  // ProgramKilled; UserError for any other failure

// The same if all strategies are programs of the user: no build, and no versions of LibTorch and NCCL. Ranks state their own.
RunnerFacts facts_for_own_programs(const Programs& programs);

// Output of `trainyard-runner --check-network FILE` on this host: one line. `agrees` is false if the network
// does not compute what PyTorch computed, or if that could not be checked; then the line is the error.
struct NetworkCheck {
  bool agrees = false;
  std::string line;
};
NetworkCheck check_network(const Programs& programs, const std::filesystem::path& exported);

// Circumstances if the launcher chooses the hosts: the host is then the name of the launcher.
experiments::Circumstances elsewhere(experiments::Circumstances here, const experiments::Machine& machine);

}  // namespace trainyard::orchestrator
