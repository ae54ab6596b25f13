// Sweeps whose ranks are tasks of a real Slurm.
#include <algorithm>
#include <csignal>
#include <set>

#include <doctest/doctest.h>

#include "base/text.h"
#include "orchestrator/rank/process.h"
#include "tests/cluster/cluster_sweep.h"
#include "tests/cluster/real_slurm.h"
#include "tests/support/contains.h"
#include "tests/support/result_rows.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::cluster;
using e2e::run_trainyard;
using e2e::Scratch;

namespace {

constexpr const char* two_nodes = "launcher = \"slurm\"\nnodes = 2\nexclusive = \"devices\"\n";

}  // namespace

TEST_CASE(
    "a sweep with one rank, two ranks, a server and a user program has the same rows as Slurm jobs as on "
    "this host") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("train.py", e2e::documented_example());
  scratch.write("slurm.toml", mixed_file(two_nodes));
  const auto there = scratch.at({"run", "slurm.toml", "--no-report", "--yard", "there"});
  REQUIRE_MESSAGE(there.code == 0, (there.out + there.err));
  CHECK(tests::result_rows(scratch.path() / "there") == rows_here());
  CHECK(contains(cluster->client({"squeue", "-h", "--states=all", "--format=%j %N"}), " n[1-2]\n"));
  CHECK(cluster->becomes_empty());
  const auto again = scratch.at({"run", "slurm.toml", "--no-report", "--yard", "there"});
  CHECK(contains(again.out, "0 runs finished, 4 were finished before"));
}

TEST_CASE("an orchestrator that was killed and restarted resumes its jobs and submits none of them twice") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("sleep.sh", held_program());
  scratch.write("sweep.toml", sleeping_file(6, 1, two_nodes));
  {
    e2e::Trainyard killed(scratch.path(), {"run", "sweep.toml", "--no-report"});
    REQUIRE(e2e::comes_true([&] { return starts(scratch.path()).size() >= 2; }));
    killed.signal(SIGKILL);
    killed.wait();
  }
  e2e::Trainyard again(scratch.path(), {"run", "sweep.toml", "--no-report"});
  CHECK(e2e::comes_true([&] {
    return contains(tests::read_text(scratch.path() / "stdout.txt"),
                    "attempt 1 is still running; resuming it");
  }));
  scratch.write("go", "");
  const auto output = again.wait();
  CHECK_MESSAGE(output.code == 0, (output.out + output.err));
  std::set<std::string> keys;  // an attempt that was killed before its submission started nothing
  for (const auto& line : starts(scratch.path())) keys.insert(line.substr(0, line.find(' ')));
  CHECK(starts(scratch.path()).size() == 6);
  CHECK(keys.size() == 6);
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "hacked"));
  CHECK(scratch.at({"db", "check"}).code == 0);
  CHECK(cluster->becomes_empty());
  CHECK(e2e::ranks_below(scratch.path()).empty());
}

TEST_CASE("inside an allocation runs are job steps with the same rows, even if the orchestrator is killed") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("train.py", e2e::documented_example());
  scratch.write("shared.toml", mixed_file(two_nodes));
  cluster->client({"salloc", "--no-shell", "--ntasks=4", "--nodes=2"});
  const std::string allocation = nonempty_lines(cluster->client({"squeue", "-h", "--format=%i"})).at(0);
  const std::map<std::string, std::string> inside{{"SLURM_JOB_ID", allocation}};
  const auto there = scratch.at(
      {"run", "shared.toml", "--no-report", "--yard", "there", "--exclude-where", "strategy=mine"}, inside);
  CHECK_MESSAGE(there.code == 0, (there.out + there.err));
  const auto rows = tests::result_rows(scratch.path() / "there");
  CHECK(rows.size() > 10);  // two runs, their epochs, ranks and metrics
  for (const auto& row : rows)
    CHECK_MESSAGE(std::find(rows_here().begin(), rows_here().end(), row) != rows_here().end(), row);

  scratch.write("sleep.sh", sleeping_program(2));
  scratch.write("sleepers.toml", sleeping_file(2, 2, two_nodes));
  {
    e2e::Trainyard killed(scratch.path(), {"run", "sleepers.toml", "--no-report"}, inside);
    REQUIRE(e2e::comes_true([&] { return starts(scratch.path()).size() == 4; }));
    killed.signal(SIGKILL);
    killed.wait();
  }
  const auto output = scratch.at({"run", "sleepers.toml", "--no-report"}, inside);
  CHECK_MESSAGE(output.code == 0, (output.out + output.err));
  CHECK(cluster->client({"squeue", "-h", "--format=%i"}) == allocation + "\n");  // no other job
  scratch.write("sleep.sh", sleeping_program(0));
  scratch.write("here.toml", sleeping_file(2, 2, "exclusive = \"devices\"\n"));
  REQUIRE(scratch.at({"run", "here.toml", "--no-report", "--yard", "here"}).code == 0);
  CHECK(tests::result_rows(scratch.path() / "yard") == tests::result_rows(scratch.path() / "here"));
  cluster->client({"scancel", allocation});
  CHECK(cluster->becomes_empty());
  CHECK(e2e::ranks_below(scratch.path()).empty());

  scratch.write("outside.toml", sleeping_file(1, 1, std::string(two_nodes) + "allocation = \"shared\"\n"));
  checked_error(scratch.at({"run", "outside.toml", "--no-report", "--yard", "outside"}), 2,
                "trainyard does not run inside a Slurm allocation");
}

TEST_CASE("an elastic run has as many replicas as its allocation has tasks, and trains the same") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  const std::string text = R"(name = "small"
[matrix]
model = ["mlp"]
strategy = ["ddp"]
[defaults]
dataset = "synthetic-digits"
train_samples = 300
epochs = 3
checkpoint = "epoch"
[strategy.ddp]
replicas = 3
min_replicas = 2
[machine]
)" + std::string(two_nodes);
  scratch.write("small.toml", text);
  cluster->client({"salloc", "--no-shell", "--ntasks=2", "--nodes=2"});
  const std::string allocation = nonempty_lines(cluster->client({"squeue", "-h", "--format=%i"})).at(0);
  const auto run =
      scratch.at({"run", "small.toml", "--no-report"}, {{"SLURM_JOB_ID", allocation}, {"SLURM_NTASKS", "2"}});
  CHECK_MESSAGE(run.code == 0, (run.out + run.err));
  cluster->client({"scancel", allocation});
  CHECK(cluster->becomes_empty());
  const auto show = scratch.at({"show", "last"}).out;
  CHECK(contains(show, "attempt 1: finished"));
  CHECK(contains(show, "times do not count: 2 of 3 replicas: the allocation has 2 tasks"));
  CHECK_FALSE(contains(show, "log of rank 2"));
}
