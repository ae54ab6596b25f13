#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "orchestrator/rank/process.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"
#include "tests/support/user_error.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace fs = std::filesystem;

namespace {

RankCommand command_of(const TemporaryFolder& folder, std::vector<std::string> argv) {
  return {.argv = std::move(argv), .environment = {}, .cores = {}, .log = folder.path / "log"};
}

// The output of a program that must end without an error.
std::string output_of(const RankCommand& command) {
  const auto process = start_process(command);
  REQUIRE(becomes_true(tests::patience, [&] { return process->poll().has_value(); }));
  CHECK(to_text(*process->poll()) == "exit code 0");
  return text_of(command.log);
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

bool has_children() {
  return ::waitpid(-1, nullptr, WNOHANG) == 0 || errno != ECHILD;
}

void write_program(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
  fs::permissions(file, fs::perms::owner_all);
}

}  // namespace

TEST_CASE("a process inherits no descriptor but the first three") {
  const TemporaryFolder folder;
  const int open = ::fcntl(STDIN_FILENO, F_DUPFD, 100);  // without close-on-exec
  REQUIRE(open >= 100);
  const auto text = output_of(command_of(
      folder, {"/bin/sh", "-c", "for fd in /proc/$$/fd/*; do echo $(basename $fd); done | tr '\\n' ' '"}));
  ::close(open);
  CHECK(text.find(" " + std::to_string(open) + " ") == std::string::npos);
  CHECK(text.starts_with("0 1 2 "));
}

TEST_CASE("no descriptor stays open and no child stays unreaped, whether programs start or not") {
  const TemporaryFolder folder;
  const std::size_t before = open_descriptors();
  REQUIRE_FALSE(has_children());
  for (int i = 0; i < 20; ++i) {
    output_of(command_of(folder, {"/bin/true"}));
    CHECK_THROWS_AS(start_process(command_of(folder, {"/nowhere/runner"})), UserError);
    auto elsewhere = command_of(folder, {"/bin/true"});
    elsewhere.folder = folder.path / "nowhere";
    CHECK_THROWS_AS(start_process(elsewhere), UserError);
    CHECK_FALSE(has_children());
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("the error for a failed start names the step and the reason") {
  const TemporaryFolder folder;
  const auto message = [](const RankCommand& command) {
    return tests::user_error_of([&] { start_process(command); });
  };
  CHECK(message(command_of(folder, {"/nowhere/runner"})) ==
        "cannot start /nowhere/runner: executing it: No such file or directory");
  CHECK(message(command_of(folder, {"no-such-program"})) ==
        "cannot start no-such-program: executing it: No such file or directory");
  write_program(folder.path / "text", "words");
  fs::permissions(folder.path / "text", fs::perms::owner_read);
  const std::string text = (folder.path / "text").string();
  CHECK(message(command_of(folder, {text})) == "cannot start " + text + ": executing it: Permission denied");

  auto elsewhere = command_of(folder, {"/bin/sh", "-c", "echo ran"});
  elsewhere.folder = folder.path / "nowhere";
  CHECK(message(elsewhere) == "cannot start /bin/sh: entering its folder: No such file or directory");
  CHECK(text_of(folder.path / "log").empty());

  auto unwritable = command_of(folder, {"/bin/true"});
  unwritable.log = folder.path / "nowhere" / "log";
  CHECK(message(unwritable) ==
        "cannot start /bin/true: log " + unwritable.log.string() + ": No such file or directory");
}

TEST_CASE("if no descriptor is left for its log, a process does not start, and the error gives the reason") {
  const TemporaryFolder folder;
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(lowest);
  const rlimit few{static_cast<rlim_t>(lowest) + 1, old.rlim_max};  // for its input
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  const RankCommand command = command_of(folder, {"/bin/true"});
  const std::string message = tests::user_error_of([&] { start_process(command); });
  ::setrlimit(RLIMIT_NOFILE, &old);
  CHECK(message == "cannot start /bin/true: log " + command.log.string() + ": Too many open files");
}

TEST_CASE("a program gets its name and its arguments unchanged, even empty ones") {
  const TemporaryFolder folder;
  CHECK(output_of(command_of(folder, {"sh", "-c", R"(cat /proc/$$/cmdline | tr '\0' '|')", "", "a b", "\""}))
            .ends_with(R"(||a b|"|)"));
  CHECK(text_of(folder.path / "log").starts_with("sh|-c|"));
}

TEST_CASE("a program is found in PATH, or relative to the folder in which it starts") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path / "there");
  write_program(folder.path / "there" / "hello", "#!/bin/sh\npwd\n");
  auto command = command_of(folder, {"./hello"});
  command.folder = folder.path / "there";
  CHECK(output_of(command).find("there\n") != std::string::npos);
  command.argv = {"hello"};  // a name without a slash is looked up in PATH only
  CHECK_THROWS_AS(start_process(command), UserError);
  command.argv = {"true"};
  CHECK_NOTHROW(output_of(command));
}

TEST_CASE("a script without an interpreter line is run by the shell") {
  const TemporaryFolder folder;
  const fs::path script = folder.path / "script";
  write_program(script, "echo \"$0 $*\"\n");
  CHECK(output_of(command_of(folder, {script.string(), "a", "b"})) == script.string() + " a b\n");
}

TEST_CASE("a child that cannot start runs no exit handler of this process") {
  const TemporaryFolder folder;
  static fs::path written;
  written = folder.path / "handler";
  const pid_t parent = ::fork();
  if (parent == 0) {
    std::atexit([] { std::ofstream(written, std::ios::app) << "ran\n"; });
    try {
      start_process(command_of(folder, {"/nowhere/runner"}));
    } catch (const UserError&) {
      ::_exit(7);
    }
    ::_exit(8);
  }
  int status = 0;
  REQUIRE(::waitpid(parent, &status, 0) == parent);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK_FALSE(fs::exists(written));
}
