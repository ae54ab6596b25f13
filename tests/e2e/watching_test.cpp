// A sweep that is watched from another terminal.
#include <csignal>
#include <fstream>
#include <optional>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/shell_arm.h"
#include "tests/support/terminal.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

bool has_text(const std::filesystem::path& file) {
  return std::ifstream(file).peek() != std::ifstream::traits_type::eof();
}

// A sweep of one run that records an epoch and waits for the file `go`.
class HeldSweep {
 public:
  explicit HeldSweep(int replicas = 1)
      : scratch_(
            "echo rank $RANK begins; printf 'half a '\nepoch 1\nuntil_there go\n"
            "echo line; echo rank $RANK ends\nfinish",
            "[7]", replicas) {
    sweep_.emplace(scratch_.path(), std::vector<std::string>{"run", "arms.toml", "--no-report"});
    REQUIRE(comes_true([&] { return std::filesystem::exists(path() / "yard/results.db"); }));
  }

  const std::filesystem::path& path() const { return scratch_.path(); }
  // A folder for the output of a program that runs beside the sweep.
  std::filesystem::path folder(const std::string& name) const {
    std::filesystem::create_directories(path() / name);
    return path() / name;
  }
  bool has_printed(const std::string& name) const { return has_text(path() / name / "stdout.txt"); }
  Trainyard& program() { return *sweep_; }
  void go() const { scratch_.write("go", ""); }

 private:
  ArmScratch scratch_;
  std::optional<Trainyard> sweep_;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Line wrapping, the only mode that is changed, is on.
void check_left_in_order(const std::string& output) {
  const auto on = output.rfind("\033[?7h"), off = output.rfind("\033[?7l");
  REQUIRE(on != std::string::npos);
  REQUIRE(off != std::string::npos);
  CHECK(on > off);
  for (const char* mode : {"?1049", "?25"}) CHECK_FALSE(contains(output, mode));
}

}  // namespace

TEST_CASE("status --watch draws over its last text, ends with the sweep and prints its last state") {
  if (!has_terminals()) return;
  HeldSweep sweep;
  Terminal watch(sweep.path(), {"status", "--watch"});
  REQUIRE(watch.shows("Ctrl-C ends this, not the sweep"));
  REQUIRE(watch.shows("1/1"));  // epochs of the running run
  sweep.go();
  CHECK(watch.wait() == 0);
  check_left_in_order(watch.output());
  const std::string after = watch.output().substr(watch.output().rfind("\033[H"));
  CHECK_MESSAGE(contains(after, "every run is finished"), after);
  CHECK(contains(after, "no sweep runs in"));
  CHECK(sweep.program().wait().code == 0);
}

TEST_CASE("Ctrl-C ends status --watch but not the sweep, and leaves the terminal in order") {
  if (!has_terminals()) return;
  HeldSweep sweep;
  Terminal watch(sweep.path(), {"status", "--watch"});
  REQUIRE(watch.shows("Ctrl-C"));
  watch.type("\x03");
  CHECK(watch.wait() == 130);
  check_left_in_order(watch.output());
  sweep.go();
  CHECK(sweep.program().wait().code == 0);
}

TEST_CASE("Ctrl-Z leaves the terminal in order, and fg shows status --watch again") {
  if (!has_terminals()) return;
  HeldSweep sweep;
  // With job control, like an interactive shell.
  Terminal shell(
      sweep.path(),
      {"-c", "set -m; \"$0\" status --watch; echo stopped with $?; fg; echo left with $?", TRAINYARD_PROGRAM},
      "/bin/bash");
  REQUIRE(shell.shows("Ctrl-C"));
  shell.type("\x1a");
  REQUIRE(shell.shows("stopped with 148"));  // 128 + SIGTSTP
  check_left_in_order(shell.output().substr(0, shell.output().find("stopped with")));
  const auto stopped = shell.output().find("stopped with");
  REQUIRE(comes_true([&] {
    shell.read();
    return contains(shell.output().substr(stopped), "\033[H");
  }));
  shell.type("\x03");
  CHECK(shell.shows("left with 130"));
  check_left_in_order(shell.output());
  shell.wait();
  sweep.go();
  CHECK(sweep.program().wait().code == 0);
}

TEST_CASE("status --watch into a file has no escapes, and ends if the sweep is killed") {
  HeldSweep sweep;
  Trainyard watch(sweep.folder("watch"), {"status", "--watch", "--yard", "../yard"});
  REQUIRE(comes_true([&] { return sweep.has_printed("watch"); }));
  sweep.program().signal(SIGKILL);
  const auto watched = watch.wait();
  CHECK(watched.code == 0);
  CHECK_FALSE(contains(watched.out, "\033"));
  CHECK(contains(watched.out, "no sweep runs in"));
  CHECK(run_trainyard(sweep.path(), {"status", "--watch"}).code == 0);  // also without a sweep
}

TEST_CASE("logs --follow prints the output of a rank as it comes, and ends with the run") {
  HeldSweep sweep(2);
  Trainyard one(sweep.folder("one"), {"logs", "last", "--rank", "1", "--follow", "--yard", "../yard"});
  Trainyard all(sweep.folder("all"), {"logs", "last", "--follow", "--yard", "../yard"});
  REQUIRE(comes_true([&] { return sweep.has_printed("one") && sweep.has_printed("all"); }));
  sweep.go();
  const auto followed = one.wait();
  CHECK(followed.code == 0);
  CHECK(followed.out == "rank 1 begins\nhalf a line\nrank 1 ends\n");
  const std::string both = all.wait().out;
  for (const char* rank : {"0", "1"})
    for (const char* what : {" begins\n", " ends\n"})
      CHECK(count_of(both, "rank " + std::string(rank) + what) == 1);
  CHECK(count_of(both, "\nhalf a line\n") == 2);  // ranks do not interrupt each other's lines
  CHECK(sweep.program().wait().code == 0);

  checked_error(run_trainyard(sweep.path(), {"logs", "last", "--rank", "2"}), 2,
                "there is no rank 2; the run has ranks 0 to 1");
}

TEST_CASE("logs --follow ends with its attempt, and says that another one comes") {
  const Scratch scratch;
  scratch.write(
      "arm.sh",
      shell_arm("echo try $attempt\nuntil_there go\n[ $attempt -lt 3 ] && exit 3\nepoch 1\nfinish"));
  scratch.write("arms.toml", shell_arm_file("[7]"));
  Trainyard sweep(scratch.path(),
                  {"run", "arms.toml", "--no-report", "--max-retries", "2", "--backoff", "0.3"});
  REQUIRE(comes_true([&] { return std::filesystem::exists(scratch.path() / "yard/results.db"); }));
  const auto folder = scratch.path() / "follow";
  std::filesystem::create_directories(folder);
  Trainyard follow(folder, {"logs", "last", "--follow", "--yard", "../yard"});
  REQUIRE(comes_true([&] { return has_text(folder / "stdout.txt"); }));
  scratch.write("go", "");
  const auto followed = follow.wait();
  CHECK(followed.code == 0);
  CHECK(followed.out == "try 1\n");
  CHECK(contains(followed.err, "note: attempt 1 failed; repeat the command to follow the next attempt"));
  CHECK(sweep.wait().code == 0);
  const auto second = scratch.at({"logs", "last", "--follow", "--attempt", "2"});
  CHECK(second.out == "try 2\n");
}

TEST_CASE("logs --follow ends if the sweep was killed, and prints that") {
  HeldSweep sweep;
  Trainyard follow(sweep.folder("follow"), {"logs", "last", "-f", "--yard", "../yard"});
  REQUIRE(comes_true([&] { return sweep.has_printed("follow"); }));
  sweep.program().signal(SIGKILL);
  checked_error(follow.wait(), 0, "its sweep ended before the run; `trainyard resume` continues it");
  sweep.go();
}

// The first run takes one second, so the others are expected to take one too. The second one has used up its
// second, and the third waits.
TEST_CASE("status and status --watch estimate the time left from finished runs of the same kind") {
  const Scratch scratch;
  scratch.write("arm.sh", shell_arm("epoch 1\n[ $seed = 1 ] || { until_there go; finish; exit; }\n"
                                    "sleep 1.2\nrecord end '\"status\":\"finished\",\"total_seconds\":1'"));
  scratch.write("arms.toml", shell_arm_file("[1, 2, 3]"));
  Trainyard sweep(scratch.path(), {"run", "arms.toml", "--no-report", "--order", "declared"});
  const auto folder = [&](const char* name) {
    std::filesystem::create_directories(scratch.path() / name);
    return scratch.path() / name;
  };
  const auto status = [&] { return run_trainyard(folder("status"), {"status", "--yard", "../yard"}).out; };
  CHECK_MESSAGE(comes_true([&] { return contains(status(), "\ntime left: about 1.0 s\n"); }), status());
  Trainyard watch(folder("watch"), {"status", "--watch", "--yard", "../yard"});
  REQUIRE(comes_true([&] { return has_text(scratch.path() / "watch/stdout.txt"); }));
  scratch.write("go", "");
  CHECK(contains(watch.wait().out, "\ntime left: about 1.0 s\n"));
  CHECK(sweep.wait().code == 0);
  CHECK_FALSE(contains(status(), "time left"));
}
