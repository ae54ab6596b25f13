// Faults of jobs, nodes and the controller: a sweep ends with the rows of an undisturbed one, or with a
// reason.
#include <csignal>
#include <thread>

#include <doctest/doctest.h>

#include "base/files.h"
#include "base/text.h"
#include "orchestrator/rank/process.h"
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

constexpr const char* as_jobs = "launcher = \"slurm\"\nexclusive = \"devices\"\n";

// The ids of the running jobs, as soon as there are at least `wanted`.
std::vector<std::string> running_jobs(const RealSlurm& cluster, std::size_t wanted) {
  std::vector<std::string> ids;
  comes_true([&] {
    ids = nonempty_lines(cluster.client({"squeue", "-h", "--states=RUNNING", "--format=%i"}));
    return ids.size() >= wanted;
  });
  REQUIRE(ids.size() >= wanted);
  return ids;
}

// The records of rank 0 of all attempts.
std::string records_below(const std::filesystem::path& yard) {
  std::string all;
  std::error_code missing;
  for (auto entry = std::filesystem::recursive_directory_iterator(yard, missing);
       !missing && entry != std::filesystem::recursive_directory_iterator(); entry.increment(missing))
    if (entry->path().filename() == "rank-0.records.jsonl") all += whole_file(entry->path());
  return all;
}

void check_nothing_left(const RealSlurm& cluster, const Scratch& scratch) {
  CHECK(cluster.becomes_empty());
  CHECK(comes_true([&] { return e2e::ranks_below(scratch.path()).empty(); }));
}

}  // namespace

TEST_CASE(
    "a cancelled job, a drained or failed node and a stopped controller cost attempts, but no results") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("sleep.sh", sleeping_program(0));
  scratch.write("here.toml", sleeping_file(5, 2, "exclusive = \"devices\"\n"));
  REQUIRE(scratch.at({"run", "here.toml", "--no-report", "--yard", "here"}).code == 0);
  scratch.write("sleep.sh", held_program());
  std::filesystem::remove(scratch.path() / "starts");

  scratch.write("sweep.toml",
                sleeping_file(5, 2, std::string(as_jobs) + "options = [\"--ntasks-per-node=2\"]\n"));
  e2e::Trainyard sweep(scratch.path(), {"run", "sweep.toml", "--no-report"});
  REQUIRE(comes_true([&] { return starts(scratch.path()).size() >= 4; }));
  const auto jobs = running_jobs(*cluster, 2);
  std::string node = cluster->client({"squeue", "-h", "--jobs=" + jobs[1], "--format=%N"}).substr(0, 2);
  cluster->client({"scancel", jobs[0]});
  cluster->client({"scontrol", "update", "nodename=" + node, "state=down", "reason=test"});
  REQUIRE(comes_true([&] { return starts(scratch.path()).size() >= 6; }));
  cluster->client({"scontrol", "update", "nodename=" + node, "state=resume"});
  cluster->client({"scontrol", "update", "nodename=n1", "state=drain", "reason=test"});
  cluster->stop_controller();
  scratch.write("go", "");  // jobs end while the controller is stopped
  std::this_thread::sleep_for(std::chrono::seconds(1));
  cluster->start_controller();
  cluster->client({"scontrol", "update", "nodename=n1", "state=resume"});
  const auto output = checked_output(sweep.wait(), 0, "its Slurm job " + jobs[0] + ": CANCELLED");
  CHECK(contains(output.out, "NODE_FAIL"));
  CHECK(tests::result_rows(scratch.path() / "yard") == tests::result_rows(scratch.path() / "here"));
  CHECK(scratch.at({"db", "check"}).code == 0);
  check_nothing_left(*cluster, scratch);
}

TEST_CASE("a run without progress is ended with its job, and a run at its time limit fails") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("sleep.sh", sleeping_program(1000));
  scratch.write("hangs.toml", sleeping_file(1, 2, std::string(as_jobs) + "progress_timeout = 2\n"));
  checked_error(scratch.at({"run", "hangs.toml", "--no-report"}), 1, "no progress for 2 s");
  check_nothing_left(*cluster, scratch);

  scratch.write("limit.toml", sleeping_file(1, 2, std::string(as_jobs) + "time_limit = \"10:00\"\n"));
  e2e::Trainyard sweep(scratch.path(), {"run", "limit.toml", "--no-report", "--yard", "limit"});
  REQUIRE(comes_true([&] { return starts(scratch.path()).size() == 4; }));
  cluster->client(
      {"scancel", "--signal=USR1", running_jobs(*cluster, 1)[0]});  // as Slurm does before the time limit
  checked_error(sweep.wait(), 1, "its time limit was reached");
  check_nothing_left(*cluster, scratch);
}

TEST_CASE("Ctrl-C ends running and waiting jobs of a sweep, and resume finishes it") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("sleep.sh", sleeping_program(1000));
  scratch.write("sweep.toml", sleeping_file(2, 4, as_jobs));
  {
    e2e::Trainyard sweep(scratch.path(), {"run", "sweep.toml", "--no-report"});
    REQUIRE(comes_true([&] { return starts(scratch.path()).size() >= 4; }));
    sweep.signal(SIGINT);
    CHECK(sweep.wait().code == 130);
  }
  check_nothing_left(*cluster, scratch);
  scratch.write("sleep.sh", sleeping_program(0));
  CHECK(scratch.at({"resume", "--no-report"}).code == 0);
  CHECK(starts(scratch.path()).size() == 4 + 2 * 4);
}

TEST_CASE("a rank that dies is the cause, its peer ends with it, and no process of the job is left") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("sleep.sh", dying_program);
  scratch.write("sweep.toml", sleeping_file(1, 2, std::string(as_jobs) + "nodes = 2\n"));
  const auto output =
      checked_error(scratch.at({"run", "sweep.toml", "--no-report"}), 1, "error: the loss is not a number");
  CHECK(contains(output.err, "rank-1.log"));
  check_nothing_left(*cluster, scratch);
}

TEST_CASE("if Slurm refuses a job, the error quotes Slurm, and nothing has run") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  scratch.write("sleep.sh", sleeping_program(0));
  scratch.write("sweep.toml",
                sleeping_file(1, 1, std::string(as_jobs) + "partition = \"nowhere; touch hacked\"\n"));
  checked_error(scratch.at({"run", "sweep.toml", "--no-report"}), 1, "invalid partition specified");
  CHECK(starts(scratch.path()).empty());
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "hacked"));
}

TEST_CASE("a spool that the nodes do not see fails the run with advice; a visible spool holds the runs") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  const auto spool = scratch.path() / "50% %j spool";
  std::filesystem::create_directory(spool);
  scratch.write("sleep.sh", sleeping_program(0));
  scratch.write("sweep.toml", sleeping_file(1, 1, std::string(as_jobs) + "spool = \"50% %j spool\"\n"));
  // This process and its children see another folder there than the nodes.
  const auto hidden =
      scratch.at({"--mount", "/bin/sh", "-c",
                  "mount -t tmpfs none \"$1\" || exit 77; exec \"$0\" run sweep.toml --no-report",
                  TRAINYARD_PROGRAM, spool.string()},
                 {}, "/usr/bin/unshare");
  if (!contains(hidden.out, "1 run: ")) {
    MESSAGE("skipped: no file system may be mounted here: " << hidden.err);
  } else {
    CHECK(hidden.code == 1);
    CHECK_MESSAGE(contains(hidden.err, "no rank has written to"), (hidden.out + hidden.err));
    CHECK(contains(hidden.err, "set `spool` in [machine] to a folder"));
    CHECK(starts(scratch.path()).empty());
    std::filesystem::remove_all(scratch.path() / "yard");
  }
  const auto seen = scratch.at({"run", "sweep.toml", "--no-report"});
  CHECK_MESSAGE(seen.code == 0, (seen.out + seen.err));
  CHECK(std::filesystem::is_symlink(scratch.path() / "yard/runs"));
  const auto rows = tests::result_rows(scratch.path() / "yard");
  CHECK(scratch.at({"db", "rebuild"}).code == 0);
  CHECK(tests::result_rows(scratch.path() / "yard") == rows);
  checked_error(scratch.at({"run", "sweep.toml", "--no-report", "--yard", "other"}), 2, "belongs to yard");
}

TEST_CASE(
    "a run with checkpoints resumes in a new job after its time limit or a requeue, with the same rows") {
  auto* cluster = slurm();
  if (cluster == nullptr) return;
  const Scratch scratch;
  const std::string text = R"(name = "long"
[matrix]
model = ["mlp"]
strategy = ["ddp"]
seed = [3]
[defaults]
dataset = "synthetic-digits"
train_samples = 1000
epochs = 100
checkpoint = "epoch"
[machine]
)";
  scratch.write("here.toml", text + "exclusive = \"devices\"\n");
  scratch.write("limit.toml", text + as_jobs + "time_limit = \"10:00\"\n");
  REQUIRE(scratch.at({"run", "here.toml", "--no-report", "--yard", "here"}).code == 0);
  e2e::Trainyard sweep(scratch.path(), {"run", "limit.toml", "--no-report"});
  REQUIRE(comes_true([&] { return contains(records_below(scratch.path() / "yard"), "\"epoch\":4"); }));
  cluster->client({"scancel", "--signal=USR1", running_jobs(*cluster, 1)[0]});
  const auto recorded = [&](int attempt, int records) {
    return contains(
        records_below(scratch.path() / "yard"),
        "\"attempt\":" + std::to_string(attempt) + ",\"rank\":0,\"seq\":" + std::to_string(records));
  };
  REQUIRE(comes_true([&] { return recorded(2, 8); }));  // start, epochs and checkpoints
  const std::string job = running_jobs(*cluster, 1)[0];
  // trainyard submits with --no-requeue
  cluster->client({"scontrol", "update", "jobid=" + job, "requeue=1"});
  cluster->client({"scontrol", "requeue", job});
  const auto output = checked_output(sweep.wait(), 0, "its time limit was reached after epoch");
  CHECK(contains(output.out, "its Slurm job " + job + ": it was requeued"));
  for (const char* attempt : {"attempt 1", "attempt 2"})  // each attempt resumed from the one before
    CHECK_MESSAGE(contains(output.out, std::string(" of ") + attempt), output.out);
  const auto shown = scratch.at({"show", "last"}).out;
  CHECK_MESSAGE(contains(shown, "Slurm job " + job + ", resumes after epoch"), shown);
  CHECK(tests::result_rows(scratch.path() / "yard") == tests::result_rows(scratch.path() / "here"));
  check_nothing_left(*cluster, scratch);
}
