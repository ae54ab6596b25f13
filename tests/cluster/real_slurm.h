// A real Slurm on this host, in a temporary folder of its own: munged, slurmctld and two slurmd, n1 and n2,
// of two cores each. Ports are free ones, nothing of the host's own Slurm is touched, no process stays.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/rank/orphans.h"
#include "orchestrator/rank/process.h"
#include "tests/e2e/support/program.h"

namespace trainyard::cluster {

class RealSlurm {
 public:
  // Sets SLURM_CONF for this process and what it starts.
  RealSlurm();
  ~RealSlurm();
  RealSlurm(const RealSlurm&) = delete;
  RealSlurm& operator=(const RealSlurm&) = delete;

  void stop_controller();
  void start_controller();
  // "squeue", "scancel" … with these arguments: what it prints.
  std::string client(const std::vector<std::string>& arguments) const;
  // Waits until no job is in the queue or runs.
  bool becomes_empty() const;

 private:
  void write_configuration();
  std::unique_ptr<orchestrator::RankProcess> daemon(const std::vector<std::string>& argv,
                                                    const std::string& name);
  void end_leftovers() const;

  orchestrator::Subreaper subreaper_;  // daemons of daemons are reaped here
  e2e::Scratch folder_;
  std::unique_ptr<orchestrator::RankProcess> munged_, controller_;
  std::vector<std::unique_ptr<orchestrator::RankProcess>> nodes_;
};

// Started when it is first asked for, stopped at the end of the program. Null where it is not installed: then
// the test says that it is skipped, and fails under CI.
RealSlurm* slurm();

// Whether these programs are there; else says so, and fails under CI.
bool installed(const std::vector<std::string>& programs);

}  // namespace trainyard::cluster
