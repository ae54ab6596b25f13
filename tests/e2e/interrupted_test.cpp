// A sweep that is interrupted or killed, or loses a rank: no results are lost and no processes are left.
#include <fstream>

#include <doctest/doctest.h>
#include <signal.h>

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

constexpr int long_epochs = 10'000;  // takes minutes, and the test ends it long before

// True if `ranks` ranks train: a run has recorded an epoch.
bool trains(const Scratch& scratch, std::size_t ranks) {
  if (ranks_below(scratch.path()).size() != ranks ||
      !std::filesystem::exists(scratch.path() / "yard/results.db"))
    return false;
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  const auto runs = db::run_summaries(database);
  return std::any_of(runs.begin(), runs.end(),
                     [](const auto& run) { return run.status == "running" && run.epochs_done > 0; });
}

std::vector<std::string> statuses(const Scratch& scratch) {
  std::vector<std::string> found;
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  for (const auto& run : db::run_summaries(database)) found.push_back(run.status);
  return found;
}

const std::vector<std::string> sweep = {"run", "small.toml", "--no-report"};

}  // namespace

TEST_CASE("Ctrl-C ends the runs in order with code 130, and the same command continues") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(long_epochs, R"("ddp")", 1));
  Trainyard running(scratch.path(), sweep);
  REQUIRE(comes_true([&] { return trains(scratch, 2); }));
  running.signal(SIGINT);
  checked_error(running.wait(), 130, "the same command continues");
  CHECK(ranks_below(scratch.path()).empty());
  CHECK(statuses(scratch) == std::vector<std::string>{"interrupted"});

  Trainyard again(scratch.path(), sweep);
  CHECK(comes_true([&] { return trains(scratch, 2); }));
}

TEST_CASE("if the orchestrator is killed, its ranks end too, and the same command finishes the sweep") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(60, R"("ddp")", 2));
  Trainyard running(scratch.path(), sweep);
  REQUIRE(comes_true([&] { return trains(scratch, 2); }));
  running.signal(SIGKILL);
  running.wait();
  CHECK(comes_true([&] { return ranks_below(scratch.path()).empty(); }));
  CHECK(contains(scratch.at({"status"}).out, "no sweep manages these runs"));

  const auto output = scratch.at(sweep);
  CHECK_MESSAGE(output.code == 0, output.err);
  CHECK(statuses(scratch) == std::vector<std::string>{"finished", "finished"});
  const auto database = db::Database::open_read_only(scratch.path() / "yard/results.db");
  const auto interrupted = "SELECT COUNT(*) FROM attempt_status WHERE status = 'interrupted' AND attempt = 1";
  CHECK(db::select(database, interrupted).rows.at(0)[0] == 1);
}

TEST_CASE("kill -9 of trainyard leaves no process, not even one without its session and environment") {
  const Scratch scratch;
  const auto file = scratch.path() / "escaped";
  scratch.write("arms.toml", shell_arm_file("[1]"));
  scratch.write("arm.sh", shell_arm("setsid env -i /bin/sh -c 'echo $$ > " + file.string() +
                                    "; exec sleep 1000' &\nsleep 1000"));
  Trainyard running(scratch.path(), {"run", "arms.toml", "--no-report"});
  pid_t escaped = 0;
  REQUIRE(comes_true([&] { return std::ifstream(file) >> escaped && escaped > 0; }));
  CHECK(kill(escaped, 0) == 0);
  running.signal(SIGKILL);
  running.wait();
  CHECK(comes_true([&] { return kill(escaped, 0) != 0; }));
  CHECK(comes_true([&] { return ranks_below(scratch.path()).empty(); }));
}

TEST_CASE("a rank that dies ends its run, the sweep continues, and the failure is reported") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(60, R"("ddp")", 2));
  Trainyard running(scratch.path(), sweep);
  REQUIRE(comes_true([&] { return trains(scratch, 2); }));
  const auto victims = ranks_below(scratch.path());
  REQUIRE(victims.size() == 2);
  kill(victims.back(), SIGKILL);
  CHECK(comes_true([&] {
    const auto left = ranks_below(scratch.path());
    return std::find(left.begin(), left.end(), victims.front()) == left.end();
  }));
  const auto output = checked_error(running.wait(), 1, "killed by signal 9");
  CHECK(contains(output.err, ".log"));
  auto ended = statuses(scratch);
  std::sort(ended.begin(), ended.end());
  CHECK(ended == std::vector<std::string>{"failed", "finished"});
}

TEST_CASE("a second run on the same yard is refused and names the process that holds the yard") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(long_epochs, R"("single")", 1));
  Trainyard first(scratch.path(), sweep);
  REQUIRE(comes_true([&] { return trains(scratch, 1); }));
  const Scratch elsewhere;
  elsewhere.write("small.toml", sweep_file(1, R"("single")", 1));
  checked_error(
      run_trainyard(elsewhere.path(), {"run", "small.toml", "--yard", (scratch.path() / "yard").string()}), 2,
      "process " + std::to_string(first.pid()));
}

namespace {

// Whether the first attempt of a run in the yard has started its ranks.
bool has_launched(const std::filesystem::path& yard) {
  std::error_code missing;
  for (const auto& run : std::filesystem::directory_iterator(yard / "runs", missing)) {
    const auto records = tests::read_text(run.path() / "attempt-1/orchestrator.records.jsonl");
    if (contains(records, "\"launched\"")) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a sweep in a copy of a yard leaves the ranks of the original alone") {
  const Scratch scratch;
  scratch.write("arm.sh", shell_arm("case \"$dir\" in */yard/*) until_there go;; esac\nepoch 1\nfinish"));
  scratch.write("arms.toml", shell_arm_file("[1]", 2));
  Trainyard original(scratch.path(), {"run", "arms.toml", "--no-report"});
  REQUIRE(comes_true([&] { return has_launched(scratch.path() / "yard"); }));
  std::filesystem::copy(scratch.path() / "yard", scratch.path() / "copy",
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(scratch.path() /
                                    "elsewhere");  // with locks of its own: the second sweep does not wait
  for (const char* name : {"arm.sh", "arms.toml"})
    std::filesystem::copy(scratch.path() / name, scratch.path() / "elsewhere" / name);
  const auto copied = checked_output(
      run_trainyard(scratch.path() / "elsewhere", {"run", "arms.toml", "--no-report", "--yard", "../copy"}),
      0, ": is a copy of " + (scratch.path() / "yard/runs").string());
  CHECK(contains(copied.out, "1 run finished, 0 were finished before, 0 failed"));
  scratch.write("go", "");
  checked_output(original.wait(), 0, "1 run finished, 0 were finished before, 0 failed");
}

TEST_CASE("a sweep whose yard is renamed ends its ranks, creates nothing at the old path, and can continue") {
  const ArmScratch scratch("until_there go\nepoch 1\nfinish", "[1, 2, 3]");
  Trainyard sweep(scratch.path(), {"run", "arms.toml", "--no-report"});
  REQUIRE(comes_true([&] { return has_launched(scratch.path() / "yard"); }));
  std::filesystem::rename(scratch.path() / "yard", scratch.path() / "renamed");
  const auto ended = checked_error(sweep.wait(), 1,
                                   "stopped: the yard " + (scratch.path() / "yard").string() +
                                       " was renamed, moved or replaced during the sweep");
  CHECK(contains(ended.err, "trainyard resume --yard NEW_FOLDER"));
  CHECK(ranks_below(scratch.path()).empty());
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "yard"));
  scratch.write("go", "");
  const auto again = checked_output(scratch.at({"resume", "--yard", "renamed", "--no-report"}), 0,
                                    "was interrupted: the orchestrator ended first");
  CHECK_MESSAGE(contains(again.out, "3 runs finished, 0 were finished before, 0 failed"), again.out);
  CHECK(scratch.at({"db", "check", "--yard", "renamed"}).code == 0);
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "yard"));
}

TEST_CASE("a sweep whose yard was replaced by another one does not write into that one") {
  const ArmScratch scratch("until_there go\nepoch 1\nfinish");
  Trainyard sweep(scratch.path(), {"run", "arms.toml", "--no-report"});
  REQUIRE(comes_true([&] { return has_launched(scratch.path() / "yard"); }));
  std::filesystem::create_directory(scratch.path() / "other");
  std::filesystem::rename(scratch.path() / "yard", scratch.path() / "away");
  std::filesystem::rename(scratch.path() / "other", scratch.path() / "yard");
  checked_error(sweep.wait(), 1, "was renamed, moved or replaced during the sweep");
  CHECK(std::filesystem::is_empty(scratch.path() / "yard"));
}
