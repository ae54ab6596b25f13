// [machine]: effects of the launcher.
#include "experiments/run/machine.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace trainyard;
using namespace trainyard::experiments;

static Machine machine_of(const std::string& launcher, bool exclusive, const std::string& allocation = "") {
  Machine machine;
  machine.launcher = launcher;
  machine.exclusive_host = exclusive;
  machine.allocation = allocation;
  return machine;
}

TEST_CASE("timed runs of this host, and all runs of mpirun, run one at a time, but exclusive jobs do not") {
  CHECK(machine_of("local", true).one_at_a_time());
  CHECK_FALSE(machine_of("local", false).one_at_a_time());
  CHECK_FALSE(machine_of("slurm", true, "job").one_at_a_time());
  CHECK(machine_of("slurm", true, "shared").one_at_a_time());
  CHECK_FALSE(machine_of("slurm", false, "shared").one_at_a_time());
  CHECK(machine_of("mpi", true).one_at_a_time());
  CHECK(machine_of("mpi", false).one_at_a_time());
}

TEST_CASE("ranks on other hosts have the GPUs that they request") {
  Machine machine = machine_of("slurm", true);
  CHECK_FALSE(machine.on_this_host());
  CHECK_FALSE(machine.gpus_elsewhere());
  machine.gpus_per_task = 1;
  CHECK(machine.gpus_elsewhere());
  machine.accelerator = "cpu";
  CHECK_FALSE(machine.gpus_elsewhere());
  CHECK(machine_of("local", true).on_this_host());
  CHECK_THROWS_AS(machine_of("pbs", true).on_this_host(), InternalError);
}

TEST_CASE("options that trainyard sets are recognised, for Slurm even if abbreviated") {
  const Machine on_slurm = machine_of("slurm", true), on_mpi = machine_of("mpi", true);
  const LauncherRules& slurm = on_slurm.rules();
  const LauncherRules& mpi = on_mpi.rules();
  CHECK(is_own_option(slurm, "--chdir=/tmp"));
  CHECK(is_own_option(slurm, "--outp"));
  CHECK_FALSE(is_own_option(slurm, "--constraint=fast"));
  CHECK(is_own_option(mpi, "-np"));
  CHECK_FALSE(is_own_option(mpi, "--hos"));
}
