// Sweeps whose ranks are tasks of a real mpirun.
#include <csignal>

#include <doctest/doctest.h>

#include "tests/cluster/cluster_sweep.h"
#include "tests/cluster/real_slurm.h"
#include "tests/support/contains.h"
#include "tests/support/result_rows.h"

using namespace trainyard;
using namespace trainyard::cluster;
using e2e::comes_true;
using e2e::run_trainyard;
using e2e::Scratch;

namespace {

constexpr const char* by_mpirun =
    "launcher = \"mpi\"\nhosts = \"hosts\"\noptions = [\"--allow-run-as-root\", \"--oversubscribe\"]\n";

void check_nothing_left(const Scratch& scratch) {
  CHECK(comes_true([&] { return e2e::ranks_below(scratch.path()).empty(); }));
}

}  // namespace

TEST_CASE(
    "a sweep with one rank, two ranks, a server and a user program has the same rows under mpirun as on this "
    "host") {
  if (!installed({"mpirun"})) return;
  const Scratch scratch;
  scratch.write("hosts", "localhost slots=2\n");
  scratch.write("train.py", e2e::documented_example());
  scratch.write("mpi.toml", mixed_file(by_mpirun));
  const auto there = scratch.at({"run", "mpi.toml", "--no-report", "--yard", "there"});
  REQUIRE_MESSAGE(there.code == 0, (there.out + there.err));
  CHECK(tests::result_rows(scratch.path() / "there") == rows_here());
  check_nothing_left(scratch);
}

TEST_CASE("under mpirun, the first rank that dies is the cause, and a run that hangs is ended") {
  if (!installed({"mpirun"})) return;
  const Scratch scratch;
  scratch.write("hosts", "localhost slots=2\n");
  scratch.write("sleep.sh", dying_program);
  scratch.write("dies.toml", sleeping_file(1, 2, by_mpirun));
  const auto died = checked_error(scratch.at({"run", "dies.toml", "--no-report", "--yard", "dies"}), 1,
                                  "error: the loss is not a number");
  CHECK(contains(died.err, "rank-1.log"));

  scratch.write("sleep.sh", sleeping_program(1000));
  scratch.write("hangs.toml", sleeping_file(1, 2, std::string(by_mpirun) + "progress_timeout = 2\n"));
  checked_error(scratch.at({"run", "hangs.toml", "--no-report", "--yard", "hangs"}), 1,
                "no progress for 2 s");
  check_nothing_left(scratch);
}

TEST_CASE("ranks of mpirun end when their orchestrator is killed, and the same command finishes the sweep") {
  if (!installed({"mpirun"})) return;
  const Scratch scratch;
  scratch.write("hosts", "localhost slots=2\n");
  scratch.write("sleep.sh", sleeping_program(1000));
  scratch.write("sweep.toml", sleeping_file(1, 2, by_mpirun));
  {
    e2e::Trainyard killed(scratch.path(), {"run", "sweep.toml", "--no-report"});
    REQUIRE(comes_true([&] { return starts(scratch.path()).size() == 2; }));
    killed.signal(SIGKILL);
    killed.wait();
  }
  check_nothing_left(scratch);
  scratch.write("sleep.sh", sleeping_program(0));
  const auto output = scratch.at({"run", "sweep.toml", "--no-report"});
  CHECK_MESSAGE(output.code == 0, (output.out + output.err));
  CHECK(starts(scratch.path()).size() == 4);
}

TEST_CASE("if mpirun refuses a run, the error quotes mpirun") {
  if (!installed({"mpirun"})) return;
  const Scratch scratch;
  scratch.write("hosts", "localhost slots=1\n");
  scratch.write("sleep.sh", sleeping_program(0));
  scratch.write(
      "sweep.toml",
      sleeping_file(1, 2, "launcher = \"mpi\"\nhosts = \"hosts\"\noptions = [\"--allow-run-as-root\"]\n"));
  checked_error(scratch.at({"run", "sweep.toml", "--no-report"}), 1, "not enough slots");
}

TEST_CASE("list keys prints the keys of [machine] and their launchers") {
  const Scratch scratch;
  const auto all = scratch.at({"list", "keys"}).out;
  for (const char* key :
       {"launcher", "spool", "partition", "time_limit", "cpus_per_task", "hosts", "options"})
    CHECK_MESSAGE(contains(all, "\n" + std::string(key) + " "), key);
  const auto one = scratch.at({"list", "keys", "time_limit"}).out;
  CHECK(contains(one, "(slurm)"));
  CHECK(contains(one, "sbatch --time"));
}
