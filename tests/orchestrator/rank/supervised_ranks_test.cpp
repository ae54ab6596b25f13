// Ranks under a supervisor.
#include "orchestrator/rank/supervised_ranks.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/files.h"
#include "orchestrator/rank/orphans.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace fs = std::filesystem;

namespace {

// A process of a shell that has left its session and its environment, and whose parent has ended.
std::string escape(const fs::path& pid_file) {
  return "(setsid env -i /bin/sh -c 'echo $$ > " + pid_file.string() + "; exec sleep 1000' &); ";
}

SupervisedRanks ranks_of(const TemporaryFolder& folder, const std::vector<std::string>& scripts) {
  return SupervisedRanks({folder.path}, [&] {
    LocalProcesses processes;
    for (const std::string& script : scripts)
      processes.ranks.push_back(start_process(
          {.argv = {"/bin/sh", "-c", script}, .environment = {}, .cores = {}, .log = folder.path / "log"}));
    return processes;
  });
}

LocalProcesses sleeping_rank(const TemporaryFolder& folder) {
  LocalProcesses processes;
  processes.ranks.push_back(start_process(
      {.argv = {"/bin/sleep", "1000"}, .environment = {}, .cores = {}, .log = folder.path / "log"}));
  return processes;
}

// A number that this process shares with its descendants.
std::atomic<int>& shared_number() {
  void* const memory =
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return *new (memory) std::atomic<int>(0);
}

SupervisedRanks::End awaited_end(SupervisedRanks& ranks) {
  std::optional<SupervisedRanks::End> end;
  REQUIRE(becomes_true(tests::patience, [&] { return (end = ranks.end()).has_value(); }));
  return *end;
}

int written_pid(const fs::path& file) {
  REQUIRE(becomes_true(tests::patience, [&] { return text_of(file).ends_with("\n"); }));
  return pid_in(file);
}

bool any_child_left() {
  return ::waitpid(-1, nullptr, WNOHANG) == 0 || errno != ECHILD;
}

}  // namespace

TEST_CASE("ranks under a supervisor get signals, and their exit codes and signals are returned") {
  const TemporaryFolder folder;
  const std::string ready = (folder.path / "ready").string();
  const std::string trapping = "trap 'exit 7' TERM; echo > " + ready + "; while :; do sleep 0.01; done";
  auto ranks = ranks_of(folder, {"exit 3", "kill -9 $$", trapping});
  REQUIRE(ranks.pids().size() == 3);
  const auto ended = [&](int rank) { return ranks.poll(rank).has_value(); };
  REQUIRE(becomes_true(tests::patience, [&] { return ended(0) && ended(1) && fs::exists(ready); }));
  CHECK(to_text(*ranks.poll(0)) == "exit code 3");
  CHECK(to_text(*ranks.poll(1)) == "killed by signal 9 (SIGKILL)");
  CHECK_FALSE(ranks.poll(2));
  const std::string process = "/proc/" + std::to_string(ranks.supervisor());
  CHECK(text_of(process + "/comm") == "rank-supervisor\n");
  CHECK(text_of(process + "/cmdline").starts_with("rank-s"));  // a short command line cuts the name
  CHECK_FALSE(ranks.end());
  ranks.signal(SIGTERM);
  const auto end = awaited_end(ranks);
  CHECK(to_text(*ranks.poll(2)) == "exit code 7");
  CHECK_FALSE(end.supervisor_failed);
  CHECK_FALSE(any_child_left());
}

TEST_CASE("a supervisor has two open files of the process that started it: its socket and its lock") {
  const TemporaryFolder folder;
  const auto other = FileDescriptor::open(folder.path, O_RDONLY | O_DIRECTORY);
  REQUIRE(other);
  const auto ranks = ranks_of(folder, {"sleep 1000"});
  const fs::path files = "/proc/" + std::to_string(ranks.supervisor()) + "/fd";
  CHECK(fs::read_symlink(files / "3").string().starts_with("socket:"));
  CHECK(fs::read_symlink(files / "4") == folder.path / "supervisor.lock");
  for (const std::string& name : names_in(files)) CHECK(fs::read_symlink(files / name) != folder.path);
}

TEST_CASE("what ranks leave behind is ended with them, whatever session and environment it has") {
  const TemporaryFolder folder;
  const fs::path file = folder.path / "pid";
  auto ranks = ranks_of(folder, {escape(file) + "while [ ! -s " + file.string() + " ]; do sleep 0.01; done"});
  CHECK(awaited_end(ranks).leftovers == 1);
  CHECK_FALSE(alive(pid_in(file)));
}

TEST_CASE("if the process that started a supervisor is killed, nothing of its ranks is left") {
  const TemporaryFolder folder;
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto ranks = ranks_of(folder, {escape(folder.path / "pid") + "sleep 1000"});
    while (ranks.supervisor() > 0) ::pause();
  }
  const int escaped = written_pid(folder.path / "pid");
  CHECK(alive(escaped));
  CHECK_FALSE(wait_for_supervisor(folder.path, std::chrono::milliseconds(0)));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  CHECK(wait_for_supervisor(folder.path));
  CHECK_FALSE(alive(escaped));
}

TEST_CASE(
    "if a supervisor is killed, its ranks are lost, and the process that started it ends what is left") {
  const Subreaper subreaper;
  const TemporaryFolder folder;
  auto ranks = ranks_of(folder, {escape(folder.path / "pid") + "sleep 1000"});
  const int escaped = written_pid(folder.path / "pid");
  ::kill(ranks.supervisor(), SIGKILL);
  const auto end = awaited_end(ranks);
  REQUIRE(end.supervisor_failed);
  CHECK(to_text(*end.supervisor_failed) == "killed by signal 9 (SIGKILL)");
  REQUIRE(ranks.poll(0));
  CHECK(ranks.poll(0)->lost);
  CHECK_FALSE(alive(escaped));
  CHECK_FALSE(alive(ranks.pids()[0]));
  CHECK_FALSE(any_child_left());
}

TEST_CASE("a supervisor notices the end of the orchestrator, whatever error came before it") {
  const TemporaryFolder folder;
  const pid_t parent = ::fork();
  if (parent == 0) {
    const SupervisedRanks ranks({folder.path}, [&] {
      LocalProcesses processes = sleeping_rank(folder);
      errno = EAGAIN;  // as a system call that was interrupted leaves it
      return processes;
    });
    std::ofstream(folder.path / "rank") << ranks.pids().at(0) << std::endl;
    std::ofstream(folder.path / "supervisor") << ranks.supervisor() << std::endl;
    while (true) ::pause();
  }
  const int supervisor = written_pid(folder.path / "supervisor"), rank = written_pid(folder.path / "rank");
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  CHECK(becomes_true(tests::patience, [&] { return !alive(rank) && !alive(supervisor); }));
  if (alive(supervisor)) ::kill(supervisor, SIGKILL);  // the kernel kills its rank
}

TEST_CASE("readers of an attempt can neither hide its supervisor nor delay its recovery") {
  const TemporaryFolder folder;
  const auto reader = FileDescriptor::open(folder.path, O_RDONLY | O_DIRECTORY);
  REQUIRE(::flock(reader.get(), LOCK_SH) == 0);
  {
    const auto ranks = ranks_of(folder, {"sleep 1000"});
    CHECK_FALSE(wait_for_supervisor(folder.path, std::chrono::milliseconds(0)));
    const auto file = folder.path / "supervisor.lock";
    CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  }
  REQUIRE(::flock(reader.get(), LOCK_EX) == 0);
  CHECK(wait_for_supervisor(folder.path, std::chrono::milliseconds(0)));
}

TEST_CASE("a supervisor that was killed while it started the ranks is named, with advice") {
  const TemporaryFolder folder;
  const auto start = []() -> LocalProcesses {
    ::kill(::getpid(), SIGKILL);
    return {};
  };
  CHECK_THROWS_WITH_AS(
      SupervisedRanks({folder.path}, start),
      "the supervisor ended before it had started the ranks: killed by signal 9 (SIGKILL); run "
      "the command again",
      UserError);
  CHECK_FALSE(any_child_left());
}

TEST_CASE("a process that adopts orphans itself is ended together with them") {
  const TemporaryFolder folder;
  std::atomic<int>& orphan = shared_number();
  {
    const SupervisedRanks ranks({folder.path}, [&] {
      if (::fork() == 0) {
        ::close_range(STDERR_FILENO + 1, ~0U, 0);  // else the supervisor seems to live
        const Subreaper subreaper;
        if (::fork() == 0) {
          if (::fork() != 0) ::_exit(0);
          ::setsid();
          orphan = ::getpid();
        }
        while (true) ::pause();
      }
      return sleeping_rank(folder);
    });
    REQUIRE(becomes_true(tests::patience, [&] { return orphan != 0; }));
    CHECK(alive(orphan));
  }
  CHECK_FALSE(alive(orphan));
}

TEST_CASE("processes that start others without end are ended, in one group or each in its own session") {
  std::atomic<int>& links = shared_number();
  for (const bool own_sessions : {false, true}) {
    const TemporaryFolder folder;
    const auto start = [&] {
      for (int chain = 0; chain < 8; ++chain) {
        if (::fork() != 0) continue;
        ::setsid();
        ::close_range(STDERR_FILENO + 1, ~0U, 0);
        while (::fork() == 0) {
          ++links;
          if (own_sessions) ::setsid();
        }
        ::_exit(0);
      }
      return sleeping_rank(folder);
    };
    const int before = links;
    {
      const SupervisedRanks ranks({folder.path}, start);
      REQUIRE(becomes_true(tests::patience, [&] { return links > before + 1000; }));
    }
    const int after = links;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(links == after);
  }
}

TEST_CASE("a rank that cannot start is a user error, and those before it are ended") {
  const TemporaryFolder folder;
  const auto start = [&] {
    LocalProcesses processes;
    for (const char* program : {"/bin/sh", "/nowhere/runner"})
      processes.ranks.push_back(
          start_process({.argv = {program, "-c", escape(folder.path / "pid") + "sleep 1000"},
                         .environment = {},
                         .cores = {},
                         .log = folder.path / "log"}));
    return processes;
  };
  CHECK_THROWS_WITH_AS(SupervisedRanks({folder.path}, start), doctest::Contains("/nowhere/runner"),
                       UserError);
  CHECK_FALSE(any_child_left());
  if (const int escaped = pid_in(folder.path / "pid"); escaped > 0) CHECK_FALSE(alive(escaped));
}
