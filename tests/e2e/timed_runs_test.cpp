// Timed runs have the host to themselves: two sweeps in two yards take turns. No other sweep uses their cores.
// The share of other processes is recorded and decides whether times count.
#include <csignal>

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

using Environment = std::map<std::string, std::string>;

// A yard whose run creates the file `begun` and waits for the file `go`.
struct SlowYard {
  std::filesystem::path folder() const { return scratch.path(); }
  bool begun() const { return std::filesystem::exists(folder() / "begun"); }
  void go() const { scratch.write("go", ""); }
  ArmScratch scratch{"touch begun\nuntil_there go\nepoch 1\nfinish", "[0]"};
};

// Leaves one CPU to this process and to those that it starts.
class OneCpu {
 public:
  OneCpu() {
    REQUIRE(sched_getaffinity(0, sizeof before_, &before_) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &before_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  }
  ~OneCpu() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t before_{};
};

// Keeps every CPU busy, so that the kernel cannot move a process to a free one.
class Burners {
 public:
  Burners() {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) start(cpu);
  }
  ~Burners() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  Burners(const Burners&) = delete;
  Burners& operator=(const Burners&) = delete;

 private:
  void start(int cpu) {
    const pid_t pid = fork();
    if (pid > 0) pids_.push_back(pid);
    if (pid != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    for (volatile bool on = true; on;) {
    }
  }
  std::vector<pid_t> pids_;
};

}  // namespace

TEST_CASE(
    "the second of two sweeps waits and names the holder, --no-wait refuses, and Ctrl-C ends the wait") {
  const SlowYard first, second;
  const Scratch locks;
  const Environment shared{{"TRAINYARD_HOST_LOCK", locks.path().string()}};
  const std::vector<std::string> run{"run", "arms.toml", "--no-report"};
  Trainyard holder(first.folder(), run, shared);
  REQUIRE(comes_true([&] { return first.begun(); }));
  const std::string named = "process " + std::to_string(holder.pid()) + " of ";

  const auto refused =
      checked_error(run_trainyard(second.folder(), {"run", "arms.toml", "--no-report", "--no-wait"}, shared),
                    2, "this host is reserved for timed runs by " + named);
  CHECK(contains(refused.err, "trainyard run arms.toml, yard " + (first.folder() / "yard").string()));

  {
    Trainyard stopped(second.folder(), run, shared);
    REQUIRE(comes_true([&] { return contains(tests::read_text(second.folder() / "stdout.txt"), named); }));
    stopped.signal(SIGINT);
    CHECK(stopped.wait().code == 130);
    CHECK_FALSE(second.begun());
  }
  const auto packed = run_trainyard(second.folder(),
                                    {"run", "arms.toml", "--no-report", "--exclude-where", "seed=0"}, shared);
  CHECK_FALSE(contains(packed.out, "waiting"));  // nothing to train, so nothing to wait for

  Trainyard waiting(second.folder(), run, shared);
  REQUIRE(comes_true([&] { return contains(tests::read_text(second.folder() / "stdout.txt"), named); }));
  CHECK_FALSE(second.begun());
  first.go();
  CHECK(holder.wait().code == 0);
  second.go();
  const auto output =
      checked_output(waiting.wait(), 0, "waiting: this host is reserved for timed runs by " + named);
  CHECK(contains(output.out, "1 run finished"));
}

TEST_CASE("a run whose times do not count and a timed run never share a core, and each names the other") {
  const OneCpu one;
  const Scratch locks;
  const Environment shared{{"TRAINYARD_HOST_LOCK", locks.path().string()}};
  for (const bool timed_first : {true, false}) {
    const SlowYard first, second;
    const std::string packed = "[machine]\nexclusive = \"devices\"\n";
    first.scratch.write("arms.toml", shell_arm_file("[0]", 1, timed_first ? "" : packed));
    second.scratch.write("arms.toml", shell_arm_file("[0]", 1, timed_first ? packed : ""));
    Trainyard holder(first.folder(), {"run", "arms.toml", "--no-report"}, shared);
    REQUIRE(comes_true([&] { return first.begun(); }));
    const std::string taken = " is in use by process " + std::to_string(holder.pid()) + " of ";
    checked_error(run_trainyard(second.folder(), {"run", "arms.toml", "--no-report", "--no-wait"}, shared), 2,
                  taken);
    Trainyard waiting(second.folder(), {"run", "arms.toml", "--no-report"}, shared);
    REQUIRE(comes_true([&] { return contains(tests::read_text(second.folder() / "stdout.txt"), taken); }));
    CHECK_FALSE(second.begun());
    second.go();
    first.go();
    CHECK(holder.wait().code == 0);
    checked_output(waiting.wait(), 0, "waiting: core ");
  }
}

TEST_CASE("Ctrl-C ends the wait of a run for a core") {
  const OneCpu one;
  const SlowYard first, second;
  const Scratch locks;
  const Environment shared{{"TRAINYARD_HOST_LOCK", locks.path().string()}};
  const std::string packed = shell_arm_file("[0]", 1, "[machine]\nexclusive = \"devices\"\n");
  for (const SlowYard* yard : {&first, &second}) yard->scratch.write("arms.toml", packed);
  Trainyard holder(first.folder(), {"run", "arms.toml", "--no-report"}, shared);
  REQUIRE(comes_true([&] { return first.begun(); }));
  Trainyard stopped(second.folder(), {"run", "arms.toml", "--no-report"}, shared);
  REQUIRE(comes_true(
      [&] { return contains(tests::read_text(second.folder() / "stdout.txt"), "waiting: core "); }));
  stopped.signal(SIGINT);
  CHECK(stopped.wait().code == 130);
  CHECK_FALSE(second.begun());
  first.go();
  CHECK(holder.wait().code == 0);
}

TEST_CASE("times of a run beside busy processes do not count, and every output gives the reason") {
  const Scratch scratch;
  // Long enough for the kernel's ticks: less than 0.1 s of other processes always counts.
  scratch.write("small.toml", sweep_file(100, R"("single")", 1));
  {
    const Burners burners;
    checked_output(scratch.at({"run", "small.toml"}, {{"TRAINYARD_OTHERS_LIMIT", ""}}), 0,
                   "its times do not count: other processes took ");
  }
  const std::string reason = " % of its cores in the least disturbed epoch (limit 2 %)";
  const Output show = scratch.at({"show", "last"});
  CHECK_MESSAGE(contains(show.out, "times do not count: other processes took "), show.out);
  CHECK(contains(show.out, reason));
  const std::string page = tests::read_text(scratch.path() / "yard/reports/small/index.html");
  CHECK(contains(page, "are flagged and not used in verdicts"));
  CHECK(contains(page, " % of their cores)"));
  CHECK_FALSE(contains(page, "each timed run was the only one"));
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  const auto rows = db::select(database, "SELECT times_count, other_share > 0.02 FROM run_summary").rows;
  CHECK(rows == std::vector<std::vector<nlohmann::json>>{{0, 1}});

  const Output plan = scratch.at({"plan", "small.toml"});
  CHECK(contains(plan.out, "the times of 1 finished run do not count: other processes took "));
  CHECK(contains(plan.out, "`run` with --retrain-times trains them again"));
  const Output again = scratch.at({"run", "small.toml", "--retrain-times"});
  CHECK_MESSAGE(contains(again.out, "1 run finished, 0 were finished before"), again.out);
  // On a busy machine its times may still not count, for another reason.
  const std::string no_others =
      "SELECT COALESCE(times_problem NOT LIKE 'other processes%', 1), attempts FROM run_summary";
  CHECK(db::select(database, no_others).rows == std::vector<std::vector<nlohmann::json>>{{1, 2}});
  CHECK(contains(tests::read_text(scratch.path() / "yard/reports/small/index.html"),
                 "other processes may take 100000 % of the cores (TRAINYARD_OTHERS_LIMIT), not 2 %."));
}
