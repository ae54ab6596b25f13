// Sweeps whose ranks are tasks of a real Slurm.
#include <doctest/doctest.h>

#include "cluster_sweep.h"
#include "contains.h"
#include "real_slurm.h"

using namespace trainyard;
using namespace trainyard::cluster;
using e2e::run_trainyard;
using e2e::Scratch;

namespace {

constexpr const char* two_nodes = "launcher = \"slurm\"\nnodes = 2\nexclusive = \"devices\"\n";

}  // namespace

TEST_CASE(
    "a sweep of one rank, of two and of a program of the user's has the same rows as jobs of Slurm as here") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("train.py", e2e::documented_example());
  scratch.write("here.toml", mixed_file("exclusive = \"devices\"\n"));
  scratch.write("slurm.toml", mixed_file(two_nodes));
  const auto here = run_trainyard(scratch.path(), {"run", "here.toml", "--no-report", "--yard", "here"});
  REQUIRE_MESSAGE(here.code == 0, (here.out + here.err));
  const auto there = run_trainyard(scratch.path(), {"run", "slurm.toml", "--no-report", "--yard", "there"});
  REQUIRE_MESSAGE(there.code == 0, (there.out + there.err));
  CHECK(rows_of(scratch.path() / "here") == rows_of(scratch.path() / "there"));
  CHECK(contains(cluster->client({"squeue", "-h", "--states=all", "--format=%j %N"}), " n[1-2]\n"));
  CHECK(cluster->becomes_empty(5));
  const auto again = run_trainyard(scratch.path(), {"run", "slurm.toml", "--no-report", "--yard", "there"});
  CHECK(contains(again.out, "0 runs finished, 3 were finished before"));
}

TEST_CASE(
    "an orchestrator that is killed and started again goes on with its jobs and submits none of them twice") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("sleep.sh", sleeping_program(2));
  scratch.write("sweep.toml", sleeping_file(6, 1, two_nodes));
  {
    e2e::Trainyard killed(scratch.path(), {"run", "sweep.toml", "--no-report"});
    REQUIRE(e2e::within(20, [&] { return starts(scratch.path()).size() >= 2; }));
    killed.signal(SIGKILL);
    killed.wait();
  }
  const auto output = run_trainyard(scratch.path(), {"run", "sweep.toml", "--no-report"});
  CHECK_MESSAGE(output.code == 0, (output.out + output.err));
  CHECK(contains(output.out, "attempt 1 is still under way and is gone on with"));
  const auto started = starts(scratch.path());
  CHECK(started.size() == 6);
  for (const auto& line : started) CHECK_MESSAGE(line.ends_with(" 1 0"), line);  // each run's first attempt
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "hacked"));
  CHECK(run_trainyard(scratch.path(), {"db", "check"}).code == 0);
  CHECK(cluster->becomes_empty(5));
  CHECK(e2e::ranks_below(scratch.path()).empty());
}
