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

#include "orchestrator/yard/journal.h"
#include "orchestrator/yard/writer_lock.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/patience.h"
#include "tests/support/user_error.h"
#include "tests/support/without_rights.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {}  // namespace

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
  const std::string text =
      tests::user_error_of([&] { const YardLock second(yard, "trainyard run second.toml"); });
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
  CHECK(tests::user_error_of([&] {
          const YardLock lock(yard, "second");
        }).find("process " + std::to_string(holder)) != std::string::npos);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  CHECK(tests::user_error_of([&] { const YardLock lock(yard, "second"); }).empty());
}

namespace {

std::string refused_lock(const Yard& yard) {
  return tests::user_error_of([&] { const YardLock lock(yard, "trainyard rm"); });
}

// An exclusive lock of an open file, as an unknown program with write access could take it.
FileDescriptor anonymously_locked(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
  FileDescriptor fd = FileDescriptor::open(file, O_RDWR);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  REQUIRE(::fcntl(fd.get(), F_OFD_SETLK, &lock) == 0);
  REQUIRE(::flock(fd.get(), LOCK_EX | LOCK_NB) == 0);
  return fd;
}

}  // namespace

TEST_CASE("a user who can only read a yard cannot keep its owner from locking it") {
  const TemporaryFolder folder;
  const Yard yard(folder.path / "yard");
  { const YardLock lock(yard, "trainyard run"); }
  const std::filesystem::path file = yard.root() / "yard.lock";
  for (const auto& place : {folder.path, yard.root(), file})
    std::filesystem::permissions(place, std::filesystem::perms(place == file ? 0644 : 0755));
  FileDescriptor read_only;
  {
    const WithoutRights nobody;
    read_only = FileDescriptor::open(file, O_RDONLY);
  }
  REQUIRE(read_only);
  REQUIRE(::flock(read_only.get(), LOCK_EX | LOCK_NB) == 0);
  CHECK(refused_lock(yard).empty());
  CHECK_FALSE(in_use(yard));
  struct flock lock {};
  lock.l_type = F_RDLCK;
  REQUIRE(::fcntl(read_only.get(), F_OFD_SETLK, &lock) == 0);
  {
    const YardLock held(yard, "trainyard run");
    CHECK(refused_lock(yard).find("process " + std::to_string(::getpid())) != std::string::npos);
    CHECK(in_use(yard));
  }
  CHECK(refused_lock(yard).empty());
  CHECK((std::filesystem::status(file).permissions() & std::filesystem::perms(0777)) ==
        std::filesystem::perms(0644));
  CHECK_FALSE(std::filesystem::exists(file.string() + ".new"));
}

TEST_CASE("only one of several writers gets the lock of a yard while a reader blocks it") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path / "yard.lock";
  std::atomic<int> holders = 0, most = 0, taken = 0;
  for (int round = 0; round < 25; ++round) {
    std::ofstream(file, std::ios::app) << "";
    const FileDescriptor reader = FileDescriptor::open(file, O_RDONLY);
    struct flock lock {};
    lock.l_type = F_RDLCK;
    REQUIRE(::fcntl(reader.get(), F_OFD_SETLK, &lock) == 0);
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 4; ++writer)
      writers.emplace_back([&] {
        const WriterLock own = take_writer_lock(file);
        if (!own.taken) return;
        const int now = ++holders;
        if (now > most) most = now;
        ++taken;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --holders;
      });
    for (auto& writer : writers) writer.join();
  }
  CHECK(most == 1);
  CHECK(taken >= 25);
}

TEST_CASE("the error for a lock names a process only if it lives and was started at the recorded time") {
  const TemporaryFolder folder;
  const Yard yard(folder.path / "yard");
  { const YardLock lock(yard, "trainyard run"); }
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  const std::string since = "\ntrainyard run old.toml\n2026-11-20T09:30:12.345Z\n";
  for (const std::string& text :
       {std::to_string(ended) + since, std::to_string(ended) + since + "started 1\n",
        std::to_string(::getpid()) + since + "started 1\n", std::string("nonsense"), std::string()}) {
    const FileDescriptor held = anonymously_locked(yard.root() / "yard.lock", text);
    CHECK(refused_lock(yard).find(" is in use by an unknown process (find it with `fuser " +
                                  (yard.root() / "yard.lock").string() + "`)") != std::string::npos);
  }
  CHECK(refused_lock(yard).empty());
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
  CHECK(tests::user_error_of([&] { const YardLock lock(yard, "trainyard rm"); }).empty());
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
  for (int i = 0; i < 100; ++i)
    CHECK(tests::user_error_of([&] { const YardLock lock(yard, "trainyard rm"); }).empty());
  over = true;
  asking.join();
}

TEST_CASE("a yard that cannot be created is refused with the reason") {
  const TemporaryFolder folder;
  ::chmod(folder.path.c_str(), 0555);
  {
    const WithoutRights nobody;
    for (const char* name : {"yard", "some/yard"}) {
      const Yard yard(folder.path / name);
      const std::string error = refused_lock(yard);
      CHECK_MESSAGE(
          error.starts_with("cannot create the yard " + yard.root().string() + ": Permission denied"), error);
    }
  }
  ::chmod(folder.path.c_str(), 0755);
}

TEST_CASE("the holder of the lock notices that its yard was moved, removed or replaced") {
  const TemporaryFolder folder;
  const Yard yard(folder.path / "yard");
  const YardLock lock(yard, "trainyard run");
  CHECK_FALSE(lock.moved());
  std::filesystem::rename(yard.root(), folder.path / "renamed");
  CHECK(lock.moved());
  std::filesystem::create_directory(yard.root());
  CHECK(lock.moved());
  std::filesystem::remove(yard.root());
  std::filesystem::rename(folder.path / "renamed", yard.root());
  CHECK_FALSE(lock.moved());
  std::filesystem::rename(folder.path / "yard", folder.path / "renamed");
  std::filesystem::create_symlink(folder.path / "renamed", yard.root());
  CHECK_FALSE(lock.moved());  // the path leads to the same folder
}

TEST_CASE("a copy of a yard does not get the spool of the original, and a renamed yard keeps it") {
  const TemporaryFolder folder;
  const auto spool = folder.path / "spool";
  const Yard yard(folder.path / "yard"), copy(folder.path / "copy"), renamed(folder.path / "renamed");
  std::filesystem::create_directory(yard.root());
  const auto runs = with_spool(yard, spool).runs();
  std::filesystem::create_directory(copy.root());
  std::filesystem::create_directory_symlink(runs, copy.root() / "runs");
  const std::string error = tests::user_error_of([&] { with_spool(Yard(copy.root()), spool); });
  CHECK_MESSAGE(error.starts_with("the spool " + spool.string() + " belongs to yard " + yard.root().string()),
                error);
  std::filesystem::remove_all(copy.root());
  std::filesystem::rename(yard.root(), renamed.root());
  CHECK(with_spool(Yard(renamed.root()), spool).runs() == runs);
}
