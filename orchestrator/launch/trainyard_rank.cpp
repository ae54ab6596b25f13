// trainyard-rank: one task of a cluster job. See orchestrator/rank/rank_agent.h.
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "orchestrator/rank/rank_agent.h"

int main(int argc, char** argv) {
  using namespace trainyard::orchestrator;
  CLI::App program(
      "Run one rank of an attempt as a task of srun or mpirun. Their variables define the rank\n"
      "(SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK). trainyard starts this program. Do not start it by "
      "hand.",
      "trainyard-rank");
  std::string attempt;
  program.add_option("ATTEMPT", attempt, "folder of the attempt")->required();
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  try {
    return run_rank_task(attempt);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
}
