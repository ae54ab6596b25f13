#include "orchestrator/rank/fork_server.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "orchestrator/rank/supervised_ranks.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"

namespace trainyard::orchestrator {
namespace {

// Writes its text, its parent and the number of its open files, with that of the listing, to its first descriptor.
void describe_itself(const ForkServer::Request& request) {
  const std::string text = request.text + ' ' + std::to_string(::getppid()) + ' ' +
                           std::to_string(names_in("/proc/self/fd").size());
  (void)!::write(ForkServer::first_fd, text.data(), text.size());
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    out = FileDescriptor(ends[0]);
    in = FileDescriptor(ends[1]);
  }
  FileDescriptor out, in;
};

// Reads until all writers have ended.
std::string all_of(Pipe& pipe) {
  pipe.in.reset();
  std::string text;
  std::array<char, 256> piece{};
  for (ssize_t size = 0; (size = ::read(pipe.out.get(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(size));
  return text;
}

TEST_CASE("a fork server makes children of its parent, with two descriptors and nothing else") {
  std::optional<ForkServer> server(std::in_place, describe_itself);
  const pid_t its_pid = server->pid();
  REQUIRE(its_pid > 0);
  Pipe pipe;
  const std::string longer_than_a_message(1 << 20, 'x');
  for (const std::string& text : {std::string("first"), longer_than_a_message}) {
    Pipe answer;
    const pid_t child = server->fork({text, ""}, std::array{answer.in.get(), answer.in.get()});
    REQUIRE(child > 0);
    CHECK(child != its_pid);
    CHECK(all_of(answer) == text + ' ' + std::to_string(::getpid()) + " 6");
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  server.reset();
  CHECK(::kill(its_pid, 0) != 0);
  CHECK(errno == ESRCH);
}

TEST_CASE("a fork server ends with its parent") {
  Pipe pipe;
  const pid_t parent = ::fork();
  if (parent == 0) {
    const ForkServer server(describe_itself);
    const pid_t pid = server.pid();
    (void)!::write(pipe.in.get(), &pid, sizeof pid);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(parent, nullptr, 0);
  const std::string text = all_of(pipe);
  pid_t server = 0;
  REQUIRE(text.size() == sizeof server);
  std::memcpy(&server, text.data(), sizeof server);
  CHECK(becomes_true(tests::patience, [&] { return ::kill(server, 0) != 0; }));
}

TEST_CASE("if the fork server is killed, this process forks the supervisor itself") {
  const TemporaryFolder folder;
  const auto server = std::make_shared<ForkServer>(describe_itself);
  ::kill(server->pid(), SIGKILL);
  SupervisorSetting setting{folder.path};
  setting.server = server;
  setting.request = "not read";
  SupervisedRanks ranks(setting, [&] {
    LocalProcesses processes;
    processes.ranks.push_back(start_process(
        {.argv = {"/bin/sh", "-c", "exit 3"}, .environment = {}, .cores = {}, .log = folder.path / "log"}));
    return processes;
  });
  REQUIRE(becomes_true(tests::patience, [&] { return ranks.end().has_value(); }));
  CHECK(ranks.poll(0)->code == 3);
}

}  // namespace
}  // namespace trainyard::orchestrator
