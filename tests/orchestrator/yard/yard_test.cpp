#include "orchestrator/yard/yard.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "orchestrator/yard/journal.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

// The text of the UserError that `work` throws.
std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the files of a yard have absolute paths, with or without a slash at its end") {
  const Yard yard("/tmp/some/../yard/");
  CHECK(yard.root() == "/tmp/yard");
  CHECK(yard.database() == "/tmp/yard/results.db");
  CHECK(yard.attempt("3f9a1c20b7de", 2) == "/tmp/yard/runs/3f9a1c20b7de/attempt-2");
  CHECK(Yard("relative").root() == std::filesystem::current_path() / "relative");
}

TEST_CASE("the yard is the requested one, else TRAINYARD_HOME, else ./yard") {
  ::unsetenv("TRAINYARD_HOME");
  CHECK(yard_from(std::nullopt).root() == std::filesystem::current_path() / "yard");
  ::setenv("TRAINYARD_HOME", "/tmp/home", 1);
  CHECK(yard_from(std::nullopt).root() == "/tmp/home");
  CHECK(yard_from("/tmp/asked").root() == "/tmp/asked");
  ::unsetenv("TRAINYARD_HOME");
}

TEST_CASE("only its owner can enter a new yard, and an existing one keeps its permissions") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const auto permissions = [](const fs::path& place) { return fs::status(place).permissions(); };
  const mode_t before = ::umask(022);
  const Yard yard(folder.path / "above/yard");
  { const YardLock lock(yard, "trainyard run"); }
  CHECK(permissions(yard.root()) == fs::perms::owner_all);
  CHECK(permissions(folder.path / "above") != fs::perms::owner_all);  // only the yard itself is ours
  fs::permissions(yard.root(), fs::perms(0750));
  ::umask(027);
  append_to_journal(yard.journal(), {{"type", "rm"}});
  { const YardLock lock(yard, "trainyard run"); }
  CHECK(permissions(yard.root()) == fs::perms(0750));
  CHECK(permissions(yard.journal()) == fs::perms(0640));  // files respect the umask
  const Yard spooled = with_spool(yard, folder.path / "spool");
  CHECK(permissions(spooled.runs()) == fs::perms::owner_all);
  ::umask(before);
}

TEST_CASE("the error for a second lock on a yard has the process, command and time of the first") {
  const TemporaryFolder folder;
  const Yard yard(folder.path / "yard");
  const YardLock first(yard, "trainyard run first.toml");
  const std::string text = refusal([&] { const YardLock second(yard, "trainyard run second.toml"); });
  CHECK(text.find("process " + std::to_string(::getpid()) + " (trainyard run first.toml), since 20") !=
        std::string::npos);
}

TEST_CASE("the lock ends with the process that held it, however it died") {
  const TemporaryFolder folder;
  const Yard yard(folder.path / "yard");
  const pid_t holder = ::fork();
  if (holder == 0) {
    const YardLock lock(yard, "trainyard run killed.toml");
    std::ofstream(folder.path / "held") << "yes";
    while (true) ::pause();
  }
  REQUIRE(becomes_true(tests::patience, [&] { return text_of(folder.path / "held") == "yes"; }));
  CHECK(refusal([&] { const YardLock lock(yard, "second"); }).find("process " + std::to_string(holder)) !=
        std::string::npos);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  CHECK(refusal([&] { const YardLock lock(yard, "second"); }).empty());
}

TEST_CASE("a process that checks whether a yard is in use, and pauses meanwhile, does not prevent a lock") {
  const TemporaryFolder folder;
  const Yard yard(folder.path / "yard");
  { const YardLock lock(yard, "trainyard run"); }
  const int asked = ::open((yard.root() / "yard.lock").c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(::flock(asked, LOCK_SH | LOCK_NB) == 0);
  std::thread goes_on([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::close(asked);
  });
  CHECK(refusal([&] { const YardLock lock(yard, "trainyard rm"); }).empty());
  goes_on.join();
}

TEST_CASE("a folder without a database is not a yard") {
  const TemporaryFolder folder;
  const Yard yard(folder.path);
  CHECK_FALSE(yard.exists());
  std::ofstream(yard.database()) << "";
  CHECK(yard.exists());
}

TEST_CASE("a yard is in use as long as its lock exists, and checking never prevents another lock") {
  const TemporaryFolder folder;
  const Yard yard(folder.path / "yard");
  CHECK_FALSE(in_use(yard));  // does not create a folder
  CHECK_FALSE(std::filesystem::exists(yard.root()));
  {
    const YardLock lock(yard, "trainyard run first.toml");
    CHECK(in_use(yard));
  }
  CHECK_FALSE(in_use(yard));
  std::atomic<bool> over = false;
  std::thread asking([&] {
    for (; !over; std::this_thread::sleep_for(std::chrono::milliseconds(1))) static_cast<void>(in_use(yard));
  });
  for (int i = 0; i < 100; ++i) CHECK(refusal([&] { const YardLock lock(yard, "trainyard rm"); }).empty());
  over = true;
  asking.join();
}
