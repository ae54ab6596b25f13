// Ranks under a supervisor, and the cgroup of an attempt.
#include "orchestrator/rank/supervised_ranks.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/files.h"
#include "orchestrator/rank/cgroup.h"
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

SupervisedRanks ranks_of(const TemporaryFolder& folder, const std::vector<std::string>& scripts,
                         const std::string& token = "") {
  return SupervisedRanks({folder.path, token}, [&] {
    LocalProcesses processes;
    for (const std::string& script : scripts)
      processes.ranks.push_back(start_process(
          {.argv = {"/bin/sh", "-c", script}, .environment = {}, .cores = {}, .log = folder.path / "log"}));
    return processes;
  });
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

// Kills the process that started ranks with escape(), and their supervisor, at once. Returns the pid of the escaped.
int kill_both(pid_t parent, const TemporaryFolder& folder) {
  const int escaped = written_pid(folder.path / "pid"), supervisor = written_pid(folder.path / "its");
  ::kill(parent, SIGSTOP);
  ::kill(supervisor, SIGKILL);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  return escaped;
}

fs::path own_cgroup() {
  return cgroup_folder(text_of("/proc/self/mountinfo"), text_of("/proc/self/cgroup"));
}

// Whether this host lets us make cgroups. Else the tests that need one are skipped.
bool has_cgroups() {
  const Cgroup cgroup(cgroup_name(new_token()));
  if (!cgroup) MESSAGE("only with a cgroup v2 that this user may use");
  return static_cast<bool>(cgroup);
}

// Runs a rank that starts a process outside its session and environment, until it is killed.
[[noreturn]] void supervise_escaping_rank(const TemporaryFolder& folder, const std::string& token) {
  const auto ranks = ranks_of(
      folder,
      {escape(folder.path / "pid") + "echo $PPID > " + (folder.path / "its").string() + "; sleep 1000"},
      token);
  while (true) ::pause();
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
  CHECK(ranks.end_fd() == -1);
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
  for (const bool with_cgroup : {false, true}) {
    if (with_cgroup && !has_cgroups()) continue;
    const TemporaryFolder folder;
    const std::string token = with_cgroup ? new_token() : "";
    const pid_t parent = ::fork();
    if (parent == 0) {
      const auto ranks = ranks_of(folder, {escape(folder.path / "pid") + "sleep 1000"}, token);
      while (true) ::pause();
    }
    const int escaped = written_pid(folder.path / "pid");
    CHECK(alive(escaped));
    CHECK_FALSE(wait_for_supervisor(folder.path, std::chrono::milliseconds(0)).ended);
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
    CHECK(wait_for_supervisor(folder.path).ended);
    CHECK_FALSE(alive(escaped));
    if (!with_cgroup) continue;
    CHECK_FALSE(fs::exists(own_cgroup() / cgroup_name(token)));
  }
}

TEST_CASE(
    "if a supervisor is killed, its ranks are lost, and the process that started it ends what is left") {
  const Subreaper subreaper;
  for (const bool with_cgroup : {false, true}) {
    if (with_cgroup && !has_cgroups()) continue;
    const TemporaryFolder folder;
    auto ranks =
        ranks_of(folder, {escape(folder.path / "pid") + "sleep 1000"}, with_cgroup ? new_token() : "");
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
}

TEST_CASE("if supervisor and orchestrator are killed at once, the cgroup of the attempt still ends all") {
  if (!has_cgroups()) return;
  const TemporaryFolder folder;
  const std::string token = new_token();
  const pid_t parent = ::fork();
  if (parent == 0) supervise_escaping_rank(folder, token);
  const int escaped = kill_both(parent, folder);
  CHECK(alive(escaped));
  end_cgroup_of("../" + token);  // not a token
  end_cgroup_of(new_token());
  CHECK(alive(escaped));
  end_cgroup_of(token);
  CHECK_FALSE(alive(escaped));
}

TEST_CASE("the cgroup of an attempt is found from another cgroup, because the attempt names it") {
  if (!has_cgroups()) return;
  const TemporaryFolder folder;
  const std::string token = new_token();
  Cgroup scope("trainyard-test-" + token);  // as `systemd-run --scope` makes one
  const pid_t parent = scope.fork();
  if (parent == 0) supervise_escaping_rank(folder, token);
  const int escaped = kill_both(parent, folder);
  end_cgroup_of(token);  // looks below the own cgroup only
  CHECK(alive(escaped));
  const auto outlived = wait_for_supervisor(folder.path);
  CHECK(outlived.ended);
  CHECK(outlived.cgroup == scope.folder() / cgroup_name(token));
  end_cgroup_of(new_token(), outlived.cgroup);  // the cgroup of another attempt
  CHECK(alive(escaped));
  end_cgroup_of(token, outlived.cgroup);
  CHECK_FALSE(alive(escaped));
  scope.kill();
  CHECK(becomes_true(tests::patience, [&] { return scope.remove(); }));
}

TEST_CASE("a process with several threads starts its ranks without a cgroup") {
  if (!has_cgroups()) return;
  const TemporaryFolder folder;
  std::jthread other([](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  const std::string token = new_token();
  const auto ranks = ranks_of(folder, {"sleep 1000"}, token);
  CHECK(alive(ranks.pids().at(0)));
  CHECK_FALSE(fs::exists(own_cgroup() / cgroup_name(token)));
}

TEST_CASE("a supervisor notices the end of the orchestrator, whatever error came before it") {
  const TemporaryFolder folder;
  const pid_t parent = ::fork();
  if (parent == 0) {
    const SupervisedRanks ranks({folder.path}, [&] {
      LocalProcesses processes;
      processes.ranks.push_back(start_process(
          {.argv = {"/bin/sleep", "1000"}, .environment = {}, .cores = {}, .log = folder.path / "log"}));
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
    CHECK_FALSE(wait_for_supervisor(folder.path, std::chrono::milliseconds(0)).ended);
    const auto file = folder.path / "supervisor.lock";
    CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  }
  REQUIRE(::flock(reader.get(), LOCK_EX) == 0);
  CHECK(wait_for_supervisor(folder.path, std::chrono::milliseconds(0)).ended);
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

TEST_CASE("an empty cgroup of a killed program is removed later, and one with a process is not") {
  if (!has_cgroups()) return;
  const TemporaryFolder folder;
  const std::string token = new_token(), used = new_token();
  const fs::path above = own_cgroup();
  fs::create_directory(above / cgroup_name(token));
  const auto ranks = ranks_of(folder, {"sleep 1000"}, used);
  remove_empty_cgroups();
  CHECK(fs::exists(above / cgroup_name(token)));
  remove_empty_cgroups(std::chrono::seconds(0));
  CHECK_FALSE(fs::exists(above / cgroup_name(token)));
  CHECK(fs::exists(above / cgroup_name(used)));
}

TEST_CASE("processes that start others without end are ended by the cgroup") {
  if (!has_cgroups()) return;
  const TemporaryFolder folder;
  const std::string chain = "setsid env -i /bin/sh -c 'run() { echo >> " + (folder.path / "links").string() +
                            "; (run &); }; run' & while [ ! -s " + (folder.path / "links").string() +
                            " ]; do :; done; sleep 1000";
  {
    const auto ranks = ranks_of(folder, {chain}, new_token());
    REQUIRE(becomes_true(tests::patience, [&] { return fs::exists(folder.path / "links"); }));
  }
  const auto size = fs::file_size(folder.path / "links");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(fs::file_size(folder.path / "links") == size);
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

TEST_CASE("the folder of the own cgroup is found in its mount, also if only a part is mounted") {
  const std::string mount = "30 24 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n";
  CHECK(cgroup_folder(mount, "4:memory:/x\n0::/user.slice/a\n") == "/sys/fs/cgroup/unified/user.slice/a");
  CHECK(cgroup_folder(mount, "0::/\n") == "/sys/fs/cgroup/unified");
  const std::string part = "30 24 0:27 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  CHECK(cgroup_folder(part, "0::/docker/1/a\n") == "/sys/fs/cgroup/a");
  CHECK(cgroup_folder(part, "0::/docker/12\n").empty());
  CHECK(cgroup_folder(mount, "0::/../outside\n").empty());
  CHECK(cgroup_folder("31 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "0::/\n").empty());
  CHECK(cgroup_folder(mount, "4:memory:/x\n").empty());
}
