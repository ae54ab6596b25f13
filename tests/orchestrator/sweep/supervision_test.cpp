// No process survives: a grandchild of a rank that left its session and emptied its environment is ended, whichever
// process is killed. No further command is run.
#include <csignal>
#include <sstream>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "db/database/database.h"
#include "experiments/protocol/record.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

// A sweep in a child process. If a test fails, nothing of it stays.
class ChildSweep {
 public:
  explicit ChildSweep(SweepFixture& bench) : bench_(bench), pid_(::fork()) {
    if (pid_ != 0) return;
    auto own = db::Database::open_for_writing(bench.yard.database());
    RememberingStatus status;
    const auto launcher = local_launcher(bench.programs);
    const auto result = run_sweep(bench.experiment, bench.plan(), bench.yard, own, bench.programs, *launcher,
                                  status, bench.stop, bench.options);
    ::_exit(result.failures.empty() ? 0 : 1);
  }
  ~ChildSweep() {
    kill();
    if (escaped_ > 0 && alive(escaped_)) ::kill(escaped_, SIGKILL);
  }
  ChildSweep(const ChildSweep&) = delete;
  ChildSweep& operator=(const ChildSweep&) = delete;

  // The grandchild, once nothing shows that it is ours.
  int escaped() {
    REQUIRE(becomes_true(tests::patience, [&] {
      escaped_ = pid_in(bench_.attempt(0) / "escaped");
      return escaped_ > 0 && text_of("/proc/" + std::to_string(escaped_) + "/comm") == "sleep\n";
    }));
    CHECK(text_of("/proc/" + std::to_string(escaped_) + "/environ").empty());
    return escaped_;
  }
  int rank(int number) const {
    const auto file = bench_.attempt(0) / ("hanging-" + std::to_string(number));
    REQUIRE(becomes_true(tests::patience, [&] { return pid_in(file) != 0; }));
    return pid_in(file);
  }
  int supervisor() const {
    int found = 0;
    REQUIRE(becomes_true(tests::patience, [&] {
      std::istringstream lines(text_of(bench_.attempt(0) / "orchestrator.records.jsonl"));
      for (std::string line; std::getline(lines, line);)
        if (const auto parsed = experiments::parse_line(line);
            parsed.record && parsed.record->type == "launched")
          found = parsed.record->body.value("supervisor", 0);
      return found > 0;
    }));
    return found;
  }
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

 private:
  SweepFixture& bench_;
  pid_t pid_;
  int escaped_ = 0;
};

}  // namespace

TEST_CASE("after kill -9 of the orchestrator no grandchild is left that has left session and environment") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.on_message("0", "escape");
  bench.on_message("1", "deaf");
  ChildSweep sweep(bench);
  const int escaped = sweep.escaped(), first = sweep.rank(0), second = sweep.rank(1);
  sweep.kill();
  for (const int pid : {escaped, first, second})
    CHECK(becomes_true(tests::patience, [&] { return !alive(pid); }));
}

TEST_CASE("after kill -9 of the supervisor its run has failed, and no rank or grandchild is left") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.on_message("0", "escape");
  bench.on_message("1", "deaf");
  ChildSweep sweep(bench);
  const int escaped = sweep.escaped(), first = sweep.rank(0), second = sweep.rank(1);
  REQUIRE(::kill(sweep.supervisor(), SIGKILL) == 0);
  CHECK(WEXITSTATUS(sweep.wait()) == 1);
  for (const int pid : {escaped, first, second}) CHECK_FALSE(alive(pid));
  CHECK(bench.status_of(0) == "failed");
  CHECK(contains(text_of(bench.attempt(0) / "orchestrator.records.jsonl"),
                 "the supervisor of its ranks ended: killed by signal 9 (SIGKILL)"));
}

TEST_CASE("a killed supervisor ends its own run only") {
  SweepFixture bench({mlp_run("single", 1, 0), mlp_run("single", 1, 1)});
  if (bench.devices.size() < 2) {
    MESSAGE("only with two cores");
    return;
  }
  bench.experiment.machine.exclusive_host = false;
  bench.on_message("", "escape");
  ChildSweep sweep(bench);
  sweep.escaped();
  const auto other = bench.attempt(1) / "escaped";
  REQUIRE(becomes_true(tests::patience, [&] { return pid_in(other) != 0; }));
  const int spared = pid_in(other);
  ::kill(sweep.supervisor(), SIGKILL);
  CHECK(becomes_true(tests::patience, [&] {
    return contains(text_of(bench.attempt(0) / "orchestrator.records.jsonl"),
                    "the supervisor of its ranks ended");
  }));
  CHECK_FALSE(alive(sweep.rank(0)));
  CHECK(alive(spared));
  sweep.kill();
  CHECK(becomes_true(tests::patience, [&] { return !alive(spared); }));
}

TEST_CASE("an attempt is not recovered while its supervisor still ends its processes") {
  SweepFixture bench({mlp_run("ddp", 2, 0)});
  bench.journal();
  bench.on_message("", "deaf");
  ChildSweep sweep(bench);
  const int first = sweep.rank(0), second = sweep.rank(1), supervisor = sweep.supervisor();
  REQUIRE(::kill(supervisor, SIGSTOP) == 0);
  sweep.kill();
  CHECK_THROWS_WITH_AS(bench.sweep(),
                       doctest::Contains("the processes of attempt 1 are still being ended; wait a moment"),
                       UserError);
  CHECK_FALSE(contains(text_of(bench.attempt(0) / "orchestrator.records.jsonl"), "\"cause\""));
  CHECK(alive(first));
  ::kill(supervisor, SIGCONT);
  CHECK(becomes_true(tests::patience, [&] { return !alive(first) && !alive(second); }));
  bench.on_message("", "finish");
  CHECK(bench.sweep().failures.empty());
  CHECK(bench.status_of(0) == "interrupted");
}
