// trainyard-rank: one task of a cluster's job, see orchestrator/rank/rank_agent.h.
#include <iostream>
#include <string>
#include <vector>

#include "orchestrator/launch/cluster_rank_group.h"
#include "orchestrator/rank/rank_agent.h"

namespace {

constexpr const char* help = R"(trainyard-rank ATTEMPT | --probe DIR NAME RUNNER | --help

Runs one rank of the attempt in the folder ATTEMPT, as a task that srun or mpirun starts; which rank it is, their
variables say (SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK). trainyard starts it; by hand it is of no use.
)";

}  // namespace

int main(int argc, char** argv) {
  using namespace trainyard::orchestrator;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments == std::vector<std::string>{"--help"}) {
      std::cout << help;
      return 0;
    }
    if (arguments.size() == 4 && arguments[0] == "--probe")
      return answer_spool_probe(arguments[1], arguments[2], arguments[3]);
    if (arguments.size() == 1 && !arguments[0].starts_with("--")) return run_rank_task(arguments[0]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
  std::cerr << "error: wrong arguments\n" << help;
  return 2;
}
