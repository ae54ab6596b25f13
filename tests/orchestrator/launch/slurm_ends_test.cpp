// How jobs ended that have left Slurm's queue. The Slurm clients are fake, and `squeue` prints what the test chooses.
#include <cstdlib>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>

#include "orchestrator/launch/launcher.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
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

experiments::Machine machine_for_jobs() {
  experiments::Machine machine;
  machine.launcher = "slurm";
  machine.allocation = "job";
  return machine;
}

const Programs programs{"/bin/true", "/bin/true", "/bin/true"};

}  // namespace

TEST_CASE("a job that Slurm no longer lists ends without a reason") {
  const FakeSlurm slurm;
  const auto machine = machine_for_jobs();
  const auto launcher = make_launcher({machine, programs, slurm.yard});
  const auto group = launcher->launch(slurm.command("101"));
  std::optional<RankGroupEnd> end;
  becomes_true(tests::patience, [&] { return (end = group->end()).has_value(); });
  REQUIRE(end);
  CHECK(group->job() == "101");
  CHECK(end->reason == std::nullopt);
}

TEST_CASE(
    "if a job ends and no rank has written anything, it was not started, and the spool may be the cause") {
  const FakeSlurm slurm;
  const auto machine = machine_for_jobs();
  const auto launcher = make_launcher({machine, programs, slurm.yard});
  const LaunchSpec command = slurm.command("101");
  const auto group = launcher->launch(command);
  REQUIRE(becomes_true(tests::patience, [&] { return group->poll(0).has_value(); }));
  CHECK(group->poll(0)->lost);
  const auto end = group->end();
  REQUIRE(end);
  CHECK(end->reason == experiments::EndReason::not_started);
  CHECK(contains(end->why, "no rank has written to " + command.directory.string()));
  CHECK(contains(end->why, "set `spool` in [machine]"));
}

TEST_CASE(
    "a job that waits again after its ranks have started was requeued, whatever the queue showed before") {
  const FakeSlurm slurm;
  const LaunchSpec command = slurm.command("101");
  const auto queue = slurm.yard.root() / "queue";
  slurm.program("squeue", "cat '" + queue.string() + "'");
  slurm.program("scancel", ": > '" + queue.string() + "'");
  const auto machine = machine_for_jobs();
  const auto launcher = make_launcher({machine, programs, slurm.yard});
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

TEST_CASE("the tasks of a job get the interface of [machine]") {
  const FakeSlurm slurm;
  const LaunchSpec command = slurm.command("101");
  auto machine = machine_for_jobs();
  machine.interface = "ib0";
  const auto launcher = make_launcher({machine, programs, slurm.yard});
  const auto group = launcher->launch(command);
  CHECK(read_rank_group_file(command.directory).value().interface == "ib0");
}

TEST_CASE("a rank that fails after its srun was killed with the orchestrator was ended from outside") {
  const FakeSlurm slurm;
  slurm.program("srun", "sleep 100");
  auto machine = machine_for_jobs();
  machine.allocation = "shared";
  ::setenv("SLURM_JOB_ID", "7", 1);
  for (const bool adopted : {false, true}) {
    CAPTURE(adopted);
    const LaunchSpec command = slurm.command(adopted ? "102" : "101");
    const auto launcher = make_launcher({machine, programs, slurm.yard});
    auto group = launcher->launch(command);
    if (adopted) {
      group.reset();
      group = launcher->adopt(command.directory);
    }
    // Slurm has killed a child of the rank before the rank
    write_rank_exit(command.directory, 0, {.status = {.code = 1}, .host = "n1"});
    REQUIRE(becomes_true(tests::patience, [&] { return group->poll(0).has_value(); }));
    CHECK(group->poll(0)->lost == adopted);
    if (!adopted) continue;
    std::optional<RankGroupEnd> end;
    becomes_true(tests::patience, [&] { return (end = group->end()).has_value(); });
    REQUIRE(end);
    CHECK(end->reason == experiments::EndReason::preempted);
    CHECK(contains(end->why, "its ranks were ended from outside"));
  }
  ::unsetenv("SLURM_JOB_ID");
}
