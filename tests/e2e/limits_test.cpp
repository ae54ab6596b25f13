// User programs that write more than they may, or what cannot be true: their run fails with the reason, and
// nothing else is hurt.
#include <csignal>
#include <fstream>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t mebibyte = 1 << 20;

// Seed 1 does `harm`, and seed 2 stores the peak memory of the orchestrator in the file `peak`. The orchestrator is
// the parent of its parent, the supervisor.
std::string harmful(const std::string& harm) {
  return shell_arm("file=\"$dir/rank-0.records.jsonl\"\nif [ \"$seed\" = 1 ]; then\n" + harm +
                   "\nelse above=$(sed -n 's/^PPid:.//p' /proc/$PPID/status)\n"
                   "grep VmHWM /proc/$above/status > peak; fi\nepoch 1\nfinish");
}

double peak_mebibytes(const Scratch& scratch) {
  std::ifstream in(scratch.path() / "peak");
  std::string name;
  double kibibytes = 0;
  in >> name >> kibibytes;
  return kibibytes / 1024;
}

fs::path attempt_of_seed_1(const Scratch& scratch) {
  for (const auto& run : fs::directory_iterator(scratch.path() / "yard/runs")) {
    if (contains(tests::read_text(run.path() / "attempt-1/run.json"), "\"seed\": 1,"))
      return run.path() / "attempt-1";
  }
  return {};
}

void check_usable(const Scratch& scratch) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"db", "check"}, {"db", "rebuild"}, {"db", "check"}, {"status"}, {"logs", "last"}, {"report"}}) {
    const auto output = scratch.at(arguments);
    CHECK_MESSAGE(output.code == 0,
                  (arguments.front() + " " + arguments.back() + ": " + output.out + output.err));
  }
  const auto runs = scratch.at({"status", "--runs"});
  CHECK_MESSAGE((contains(runs.out, "failed") && contains(runs.out, "finished")), runs.out);
}

}  // namespace

TEST_CASE("a line of 2 GB or 54 MB of junk fails its run, and the yard stays usable") {
  struct Case {
    const char* harm;
    const char* failure;
  };
  for (const auto& [harm, failure] :
       {Case{"truncate -s 2000000000 \"$file\"; sleep 60",
             "rank-0.records.jsonl:1: the line is longer than 1 MiB"},
        Case{"yes | head -c 54000000 > \"$file\"; sleep 60",
             "rank-0.records.jsonl:1001: more than 1000 lines are not records of this run"}}) {
    const Scratch scratch;
    scratch.write("arm.sh", harmful(harm));
    scratch.write("arms.toml", shell_arm_file("[1, 2]"));
    const auto output = scratch.at({"run", "arms.toml", "--no-report"});
    CHECK(output.code == 1);
    CHECK_MESSAGE(contains(output.out + output.err, failure), (output.out + output.err));
    CHECK_MESSAGE(contains(output.out, "1 run finished"), output.out);
    CHECK(peak_mebibytes(scratch) > 1);
    CHECK(peak_mebibytes(scratch) < 200);
    MESSAGE("peak memory of the orchestrator: " << peak_mebibytes(scratch) << " MiB");
    check_usable(scratch);
  }
}

TEST_CASE("Ctrl-C is answered while a program floods its record log") {
  const Scratch scratch;
  scratch.write(
      "arm.sh",
      shell_arm("trap '' TERM\nwhile :; do for i in 1 2 3 4 5 6 7 8; do record odd '\"x\":1'; done; done"));
  scratch.write("arms.toml", shell_arm_file("[1]"));
  Trainyard sweep(scratch.path(), {"run", "arms.toml", "--no-report"});
  REQUIRE(comes_true([&] {
    const auto attempt = fs::exists(scratch.path() / "yard/runs") ? attempt_of_seed_1(scratch) : fs::path();
    std::error_code missing;
    const auto size = fs::file_size(attempt / "rank-0.records.jsonl", missing);
    return !missing && size > mebibyte;
  }));
  sweep.signal(SIGINT);
  CHECK(comes_true([&] { return contains(tests::read_text(scratch.path() / "stdout.txt"), "stopping: "); }));
  const auto output = sweep.wait();  // after all records that were written are collected
  CHECK_MESSAGE(output.code == 130, (output.out + output.err));
  CHECK(scratch.at({"db", "check"}).code == 0);
}

TEST_CASE("a log of 200 MB is shortened with a message, and `logs` prints the rest") {
  const ArmScratch scratch(
      "yes 'a line of a chatty program' | head -c 200000000\nsleep 0.5\n"
      "echo the last line\nepoch 1\nfinish");
  checked_output(scratch.at({"run", "arms.toml", "--no-report"}), 0,
                 "the log of rank 0 is larger than 64 MiB");
  const fs::path attempt = attempt_of_seed_1(scratch);
  CHECK(fs::file_size(attempt / "rank-0.log") <= 64 * mebibyte);
  CHECK(fs::file_size(attempt / "rank-0.1.log") == 64 * mebibyte);
  const auto logs = scratch.at({"logs", "last"});
  CHECK(contains(logs.out, "log shortened"));
  CHECK(logs.out.ends_with("the last line\n"));
  CHECK(contains(scratch.at({"show", "last"}).out, "the log of rank 0 is larger than 64 MiB"));
}

TEST_CASE("of a sparse log of 64 GiB, only the last MiB is printed, with a line that says so") {
  const FinishedArms scratch("echo text\nepoch 1\nfinish");
  using Case = std::pair<fs::path, std::vector<std::string>>;
  for (const auto& [file, arguments] : {Case{attempt_of_seed_1(scratch) / "rank-0.log", {"logs", "last"}},
                                        Case{scratch.path() / "yard/trainyard.log", {"logs"}}}) {
    fs::resize_file(file, std::uintmax_t{64} << 30);
    std::ofstream(file, std::ios::app) << "the end\n";
    const auto logs = scratch.at(arguments);
    CHECK(logs.code == 0);
    CHECK(logs.out.size() == mebibyte);
    CHECK(logs.out.ends_with("the end\n"));
    CHECK_MESSAGE(contains(logs.err, file.string() + " has 65536 MiB; only the last 1 MiB is printed"),
                  logs.err);
  }
}

TEST_CASE("too little stack is refused in one line that names the limit, with exit code 1") {
  const ArmScratch scratch("epoch 1\nfinish");
  const auto with_stack = [&](const std::string& kibibytes) {
    return scratch.at(
        {"-c", "ulimit -s " + kibibytes + " && exec " TRAINYARD_PROGRAM " run arms.toml --no-report"}, {},
        "/bin/sh");
  };
  const auto refused = with_stack("64");
  CHECK(refused.code == 1);
  CHECK(refused.err ==
        "trainyard: this process may use only 64 KiB of stack (`ulimit -s`), but trainyard needs 256; raise "
        "the "
        "limit, for example with `ulimit -s 8192`\n");
  CHECK(refused.out.empty());
  const auto enough = with_stack("256");
  CHECK_MESSAGE(enough.code == 0, (enough.out + enough.err));
}

TEST_CASE(
    "a sweep that runs out of memory ends with one line, and the same command finishes it without loss") {
  const Scratch scratch;
  // Seed 2 takes all further memory from the orchestrator once, and writes a record of 900 kB.
  scratch.write("arm.sh",
                shell_arm("if [ \"$seed\" = 2 ] && [ ! -e harmed ]; then echo > harmed\n"
                          "above=$(sed -n 's/^PPid:.//p' /proc/$PPID/status)\n"
                          "kibibytes=$(sed -n 's/^VmSize:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$above/status)\n"
                          "prlimit --pid $above --as=$((kibibytes * 1024))\n"
                          "record odd \"\\\"text\\\":\\\"$(printf '%0900000d' 0)\\\"\"; sleep 60; fi\n"
                          "epoch 1\nfinish"));
  scratch.write("arms.toml", shell_arm_file("[1, 2]"));
  // One arena, because malloc would take memory from the arena of a thread that has ended.
  const auto sweep = [&] {
    return scratch.at({"run", "arms.toml", "--no-report", "--order", "declared"},
                      {{"MALLOC_ARENA_MAX", "1"}});
  };
  const auto refused = sweep();
  CHECK(refused.code == 1);
  CHECK(refused.err ==
        "trainyard: out of memory: this machine, its cgroup or a limit (`ulimit -v`) gives no more; free "
        "memory, or train fewer runs at once; recorded data is safe, the same command continues\n");
  CHECK(comes_true([&] { return ranks_below(scratch.path()).empty(); }));
  CHECK(fs::exists(scratch.path() / "harmed"));
  checked_output(sweep(), 0, "1 run finished, 1 was finished before");
  const auto check = scratch.at({"db", "check"});
  CHECK_MESSAGE(check.code == 0, (check.out + check.err));
}
