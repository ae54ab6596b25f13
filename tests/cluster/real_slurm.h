// A real Slurm on this host in a temporary folder: munged, slurmctld and two slurmd (n1, n2) with two cores
// each. It uses free ports, does not touch the host's own Slurm, and leaves no process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "orchestrator/rank/orphans.h"
#include "orchestrator/rank/process.h"
#include "tests/support/program.h"

namespace trainyard::cluster {

class RealSlurm {
 public:
  // Sets SLURM_CONF for this process and its children.
  RealSlurm();
  ~RealSlurm();
  RealSlurm(const RealSlurm&) = delete;
  RealSlurm& operator=(const RealSlurm&) = delete;

  void stop_controller();
  void start_controller();
  // The output of a client command such as "squeue" or "scancel".
  std::string client(const std::vector<std::string>& arguments) const;
  // Waits until the queue is empty.
  bool becomes_empty() const;

 private:
  void write_configuration();
  std::unique_ptr<orchestrator::RankProcess> daemon(const std::vector<std::string>& argv,
                                                    const std::string& name);
  void end_leftovers() const;

  orchestrator::Subreaper subreaper_;  // reaps the daemons' children
  e2e::Scratch folder_;
  std::unique_ptr<orchestrator::RankProcess> munged_, controller_;
  std::vector<std::unique_ptr<orchestrator::RankProcess>> nodes_;
};

// The cluster, started at the first call and stopped at the end of the program.
// Null if it cannot run here: the test is skipped. If Slurm is not installed, it fails under CI.
RealSlurm* slurm();

// Whether all programs are installed. If not, the test is skipped, and fails under CI.
bool installed(const std::vector<std::string>& programs);

}  // namespace trainyard::cluster
