// A test double of trainyard-runner whose replicas do not synchronise their gradients.
#include <iostream>

#include <ATen/Parallel.h>
#include <unistd.h>

#include "runner/device/rank_process.h"
#include "runner/trainer/mesh.h"
#include "runner/training/training.h"
#include "tests/runner/parity/unsynchronised.h"

namespace {

using namespace trainyard;

void run_rank() {
  const runner::Environment environment = runner::read_environment();
  const experiments::Launch launch = experiments::read_launch(environment.run_file);
  runner::RankRecords records(launch, environment.rank);
  at::set_num_threads(1);
  runner::Connections ranks =
      runner::connect(environment, runner::mesh_of(launch.run.strategy, environment.world_size));
  if (ranks.mesh.replicas > 1) runner::testing::stop_reducing(ranks);
  runner::train(launch, ranks, 1, records);
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) {  // --version --json
    std::cout << runner::to_json(runner::versions()) << "\n";
    return 0;
  }
  runner::die_with_parent();
  try {
    run_rank();
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    _exit(1);
  }
  _exit(0);
}
