// How jobs ended that have left Slurm's queue. The Slurm clients are fake: `squeue` prints nothing, and
// `sacct` prints what the test chooses.
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "orchestrator/launch/launcher.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

class FakeSlurm {
 public:
  FakeSlurm() : yard(folder_.path / "yard") {
    if (const char* path = std::getenv("PATH")) path_ = path;
    std::filesystem::create_directories(yard.runs());
    std::ofstream(yard.root() / "slurm-sees-spool") << yard.runs().string() << "\n";
    // The id of a job is the key of its run.
    program("sbatch",
            "for a; do case $a in --job-name=*) n=${a#--job-name=trainyard-}; echo ${n%%-*};; esac; done");
    program("squeue", "true");
    program("scancel", "true");
    ::setenv("PATH", (folder_.path.string() + ":" + path_).c_str(), 1);
  }
  ~FakeSlurm() { ::setenv("PATH", path_.c_str(), 1); }
  FakeSlurm(const FakeSlurm&) = delete;
  FakeSlurm& operator=(const FakeSlurm&) = delete;

  void program(const std::string& name, const std::string& script) const {
    std::ofstream(folder_.path / name) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(folder_.path / name, std::filesystem::perms::owner_all);
  }
  LaunchSpec command(const std::string& run) const {
    const auto place = yard.attempt(run, 1);
    std::filesystem::create_directories(place);
    return {place,
            run + "/1",
            "token",
            true,
            {{.argv = {"true"}, .environment = {}, .cores = {}, .log = place / "log"}}};
  }

 private:
  TemporaryFolder folder_;

 public:
  Yard yard;

 private:
  std::string path_;
};

// How each of these jobs ended, if this is the script of `sacct`.
std::map<std::string, RankGroupEnd> ends(const std::vector<std::string>& jobs, const std::string& sacct) {
  const FakeSlurm slurm;
  slurm.program("sacct", sacct);
  experiments::Machine machine;
  machine.launcher = "slurm";
  machine.allocation = "job";
  const Programs programs{"/bin/true", "/bin/true", "/bin/true"};
  const auto launcher = make_launcher({machine, programs, slurm.yard});
  std::map<std::string, std::unique_ptr<RankGroup>> groups;
  for (const auto& job : jobs) groups[job] = launcher->launch(slurm.command(job));
  std::map<std::string, RankGroupEnd> ended;
  becomes_true(tests::patience, [&] {
    for (auto& [job, group] : groups)
      if (const auto end = group->end()) {
        ended.emplace(job, *end);
        CHECK(group->job() == job);
      }
    return ended.size() == jobs.size();
  });
  REQUIRE(ended.size() == jobs.size());
  return ended;
}

}  // namespace

TEST_CASE("if a job has left the queue, the accounts of the cluster give the reason of its end") {
  const auto ended = ends({"101", "102", "103", "104", "105", "106"},
                          "cat <<END\n101|0:9|CANCELLED by 1000\n102|0:15|TIMEOUT\n103|0:125|OUT_OF_MEMORY\n"
                          "104|1:0|NODE_FAIL\n105|0:0|RUNNING\n1066|0:0|TIMEOUT\nEND");
  using Reason = experiments::EndReason;
  CHECK(ended.at("101").reason == Reason::preempted);
  CHECK(ended.at("101").why == "its Slurm job 101: CANCELLED (signal 9)");
  CHECK(ended.at("102").reason == Reason::out_of_time);
  CHECK(ended.at("103").reason == Reason::over_limits);
  CHECK(ended.at("103").why == "its Slurm job 103: OUT_OF_MEMORY (signal 125)");
  CHECK(ended.at("104").reason == Reason::preempted);
  CHECK(ended.at("104").why == "its Slurm job 104: NODE_FAIL (exit code 1)");
  CHECK(ended.at("105").reason == std::nullopt);  // accounts that lag behind the queue give no reason
  CHECK(ended.at("106").reason == std::nullopt);  // the accounts of another job give no reason
}

TEST_CASE(
    "a job that waits again after its ranks have started was requeued, whatever the queue showed before") {
  const FakeSlurm slurm;
  const LaunchSpec command = slurm.command("101");
  const auto queue = slurm.yard.root() / "queue";
  slurm.program("squeue", "cat '" + queue.string() + "'");
  slurm.program("scancel", ": > '" + queue.string() + "'");
  slurm.program("sacct", "exit 1");
  experiments::Machine machine;
  machine.launcher = "slurm";
  machine.allocation = "job";
  const auto launcher = make_launcher({machine, {"/bin/true", "/bin/true", "/bin/true"}, slurm.yard});
  const auto group = launcher->launch(command);
  const std::string line = "101|PENDING|BeginTime|" + group->marks().at("job_name").get<std::string>() + "\n";
  std::ofstream(queue) << line;
  becomes_true(tests::patience, [&] {
    group->end();
    return group->job() == "101";
  });
  for (int look = 0; look < 10; ++look) {
    CHECK_FALSE(group->end());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(tests::read_text(queue) == line);  // a job may wait as long as Slurm likes
  std::ofstream(command.directory / "rank-0.records.jsonl") << "\n";
  std::optional<RankGroupEnd> end;
  becomes_true(tests::patience, [&] { return (end = group->end()).has_value(); });
  REQUIRE(end);
  CHECK(end->reason == experiments::EndReason::preempted);
  CHECK(end->why == "its Slurm job 101: it was requeued");
}

TEST_CASE("a job on a cluster without accounts ends without a reason") {
  const auto ended = ends({"101"}, "echo 'Slurm accounting storage is disabled' >&2; exit 1");
  CHECK(ended.at("101").reason == std::nullopt);
}

TEST_CASE("the tasks of a job get the interface of [machine]") {
  const FakeSlurm slurm;
  slurm.program("sacct", "exit 1");
  const LaunchSpec command = slurm.command("101");
  experiments::Machine machine;
  machine.launcher = "slurm";
  machine.allocation = "job";
  machine.interface = "ib0";
  const auto launcher = make_launcher({machine, {"/bin/true", "/bin/true", "/bin/true"}, slurm.yard});
  const auto group = launcher->launch(command);
  CHECK(read_rank_group_file(command.directory).value().interface == "ib0");
}
