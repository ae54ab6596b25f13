// The texts that Slurm's programs read and print.
#include <algorithm>

#include <doctest/doctest.h>

#include "orchestrator/launch/slurm_jobs.h"
#include "orchestrator/launch/slurm_launcher.h"
#include "orchestrator/rank/rank_agent.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

TEST_CASE("the lines of squeue are read as jobs by name, with bars in names and without malformed lines") {
  const auto jobs = parse_squeue(
      "slurm_load_jobs error: Zero Bytes were transmitted or received\n"
      "12|PENDING|(Resources)|trainyard-a-1\n13|COMPLETED|None|one|two\n|||\n14|RUNNING\n");
  REQUIRE(jobs.size() == 2);
  CHECK(jobs.at("trainyard-a-1").id == "12");
  CHECK(waits(jobs.at("trainyard-a-1")));
  CHECK(ended(jobs.at("one|two")));
}

TEST_CASE("if two jobs have the same name, the living one is used") {
  const auto jobs = parse_squeue("12|CANCELLED|None|x\n13|RUNNING|None|x\n14|NODE_FAIL|NodeDown|y\n");
  CHECK(jobs.at("x").id == "13");
  CHECK(lost_job(jobs.at("y")));
}

TEST_CASE(
    "Slurm's list of tasks per host is read for each host") {  // sbatch(1), SLURM_TASKS_PER_NODE: "2(x3),1"
  CHECK(tasks_per_node("2(x3),1", 0) == 2);
  CHECK(tasks_per_node("2(x3),1", 2) == 2);
  CHECK(tasks_per_node("2(x3),1", 3) == 1);
  CHECK_FALSE(tasks_per_node("2(x3),1", 4));
  CHECK(tasks_per_node("8", 0) == 8);
  for (const char* wrong : {"", "x", "2(x", "2(x3", "2(xx)", "-1", "2,,1"})
    CHECK_FALSE(tasks_per_node(wrong, 1));
}

TEST_CASE(
    "sbatch gets the name and size of a job and the user's options; the job script gets the rank's command") {
  experiments::Machine machine;
  machine.launcher = "slurm";
  machine.nodes = 4;
  machine.time_limit = "1:00:00";
  machine.partition = "a partition; rm -rf /";
  machine.options = {"--mem=4G"};
  const auto arguments =
      sbatch_arguments(machine, "trainyard-x", "/shared/50% off", 2, "/yard/slurm-job.sh", {"rank", "/a b"});
  const auto has = [&](const std::string& argument) {
    return std::find(arguments.begin(), arguments.end(), argument) != arguments.end();
  };
  for (const char* wanted :
       {"--job-name=trainyard-x", "--ntasks=2", "--nodes=2", "--time=1:00:00", "--signal=USR1@120",
        "--partition=a partition; rm -rf /", "--mem=4G", "--exclusive", "--no-requeue",
        "--chdir=/shared/50% off", "--output=/shared/50%% off/slurm.log"})
    CHECK_MESSAGE(has(wanted), wanted);
  CHECK(std::vector<std::string>(arguments.end() - 2, arguments.end()) ==
        std::vector<std::string>{"rank", "/a b"});
  CHECK(std::find(arguments.begin(), arguments.end(), "/yard/slurm-job.sh") <
        std::find(arguments.begin(), arguments.end(), "--kill-on-bad-exit=0"));
}

TEST_CASE("the name of a job depends only on run, attempt and folder") {
  const std::string name = slurm_job_name("/yard/runs/3f9a1c20b7de/attempt-2", "3f9a1c20b7de/2");
  CHECK(name.starts_with("trainyard-3f9a1c20b7de-2-"));
  CHECK(name == slurm_job_name("/yard/runs/3f9a1c20b7de/attempt-2", "3f9a1c20b7de/2"));
  CHECK(name != slurm_job_name("/other/runs/3f9a1c20b7de/attempt-2", "3f9a1c20b7de/2"));
}
