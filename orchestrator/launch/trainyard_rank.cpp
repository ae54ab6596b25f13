// trainyard-rank: one task of a cluster job. See orchestrator/rank/rank_agent.h.
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "orchestrator/launch/cluster_rank_group.h"
#include "orchestrator/rank/rank_agent.h"

int main(int argc, char** argv) {
  using namespace trainyard::orchestrator;
  CLI::App program(
      "Run one rank of an attempt as a task of srun or mpirun. Their variables define the rank\n"
      "(SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK). trainyard starts this program. Do not start it by "
      "hand.",
      "trainyard-rank");
  std::string attempt;
  std::vector<std::string> probe;
  program.add_option("ATTEMPT", attempt, "folder of the attempt");
  program.add_option("--probe", probe, "answer a check of the shared folder")
      ->expected(3)
      ->type_name("DIR NAME RUNNER");
  program.require_option(1);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  try {
    return probe.empty() ? run_rank_task(attempt) : answer_spool_probe(probe[0], probe[1], probe[2]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
}
