#include <csignal>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/rank/process.h"
#include "orchestrator/rank/rendezvous.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

std::optional<ExitStatus> wait_for(RankProcess& process) {
  becomes_true(tests::patience, [&] { return process.poll().has_value(); });
  return process.poll();
}

RankCommand shell(const TemporaryFolder& folder, const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script},
          .environment = {{"GREETING", "hello"}},
          .cores = {},
          .log = folder.path / "log"};
}

}  // namespace

TEST_CASE("a process gets its environment, its output goes to its log, and its exit code is returned") {
  const TemporaryFolder folder;
  const auto process = start_process(shell(folder, "echo $GREETING; echo trouble >&2; exit 3"));
  const auto status = wait_for(*process);
  REQUIRE(status);
  CHECK(status->code == 3);
  CHECK_FALSE(status->clean());
  CHECK(to_text(*status) == "exit code 3");
  CHECK(text_of(folder.path / "log") == "hello\ntrouble\n");
}

TEST_CASE("only the user can open the store of the ranks, and it replaces what is in its place") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/etc/passwd", folder.path / "store");
  for (int launch = 0; launch < 2; ++launch) {
    const auto file = make_store_file(folder.path);
    const auto status = std::filesystem::symlink_status(file);
    CHECK(status.type() == std::filesystem::file_type::regular);
    CHECK(status.permissions() == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
    std::ofstream(file) << "keys of an earlier launch";
  }
  CHECK(std::filesystem::file_size(make_store_file(folder.path)) == 0);
  CHECK_THROWS_AS(make_store_file(folder.path / "not there"), UserError);
}

TEST_CASE("a log is appended to") {
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) {
    const auto process = start_process(shell(folder, "echo again"));
    REQUIRE(wait_for(*process));
  }
  CHECK(text_of(folder.path / "log") == "again\nagain\n");
}

TEST_CASE("the text of an end by a signal has its number and name") {
  const TemporaryFolder folder;
  const auto process = start_process(shell(folder, "sleep 100 & wait"));
  CHECK_FALSE(process->poll());
  process->signal(SIGKILL);
  const auto status = wait_for(*process);
  REQUIRE(status);
  CHECK(to_text(*status) == "killed by signal 9 (SIGKILL)");
}

TEST_CASE(
    "a process is pinned to its cores, leads a session, reads nothing, and inherits no ignored signal") {
  const TemporaryFolder folder;
  const int core = usable_cores().front();
  // The status of grep itself, because a waiting shell blocks signals for a moment.
  auto command = shell(folder,
                       "read line && echo read; grep -E 'Cpus_allowed_list|SigIgn|SigBlk' /proc/self/status; "
                       "cut -d' ' -f5,6 /proc/$$/stat; ls /proc/$$/fd | sort -n | tr '\\n' ' '");
  command.cores = {core};
  std::signal(SIGUSR1, SIG_IGN);
  const auto process = start_process(command);
  std::signal(SIGUSR1, SIG_DFL);
  REQUIRE(wait_for(*process));
  const std::string log = text_of(folder.path / "log");
  const std::string pid = std::to_string(process->pid());
  CHECK(log.find("read") == std::string::npos);
  CHECK(log.find("Cpus_allowed_list:\t" + std::to_string(core) + "\n") != std::string::npos);
  CHECK(log.find("SigIgn:\t0000000000000000") != std::string::npos);
  CHECK(log.find("SigBlk:\t0000000000000000") != std::string::npos);
  CHECK(log.find(pid + " " + pid + "\n") != std::string::npos);
  CHECK(log.find("\n0 1 2 ") != std::string::npos);
}

TEST_CASE("destroying a process ends its whole group") {
  const Subreaper subreaper;  // the init process of a container may never reap the child
  const TemporaryFolder folder;
  auto process =
      start_process(shell(folder, "sleep 100 & echo $! > " + (folder.path / "child").string() + "; wait"));
  REQUIRE(becomes_true(tests::patience, [&] { return text_of(folder.path / "child").ends_with("\n"); }));
  const int child = pid_in(folder.path / "child");
  CHECK(alive(child));
  process.reset();
  CHECK(becomes_true(tests::patience, [&] { return !alive(child); }));
}

TEST_CASE("a missing program is a user error that names it") {
  const TemporaryFolder folder;
  RankCommand command{
      .argv = {"/nowhere/runner"}, .environment = {}, .cores = {}, .log = folder.path / "log"};
  CHECK_THROWS_WITH_AS(start_process(command), doctest::Contains("/nowhere/runner"), UserError);
}

TEST_CASE("cores that do not exist are an error before the program runs") {
  const TemporaryFolder folder;
  auto command = shell(folder, "echo ran");
  command.cores = {1023};
  CHECK_THROWS_WITH_AS(start_process(command), doctest::Contains("pinning"), UserError);
  CHECK(text_of(folder.path / "log").empty());
}

TEST_CASE("a process dies with the process that launched it") {
  const TemporaryFolder folder;
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto process =
        start_process(shell(folder, "echo $$ > " + (folder.path / "pid").string() + "; exec sleep 100"));
    while (true) ::pause();
  }
  REQUIRE(becomes_true(tests::patience, [&] { return text_of(folder.path / "pid").ends_with("\n"); }));
  const int child = pid_in(folder.path / "pid");
  CHECK(alive(child));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  CHECK(becomes_true(tests::patience, [&] { return !alive(child); }));
}
