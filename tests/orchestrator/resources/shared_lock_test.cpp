// The lock of a host for timed runs: who holds it, who waits, and which files are refused.
#include "orchestrator/resources/shared_lock.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/orchestrator/support/sweep_fixture.h"
#include "tests/support/contains.h"
#include "tests/support/patience.h"
#include "tests/support/user_error.h"
#include "tests/support/without_rights.h"

using namespace trainyard;
using namespace trainyard::orchestrator;

namespace {

namespace fs = std::filesystem;

const HostUser ana{"trainyard run first.toml", "/home/ana/yard"};
constexpr const char* file_name = "trainyard-timed-runs.lock";

std::string refusal(const fs::path& folder) {
  return tests::user_error_of([&] { SharedLock::try_take(host_lock_in(folder), ana); });
}

// Takes the lock. It names this process then, and nobody else gets it.
void check_holds(const fs::path& folder) {
  const auto held = SharedLock::try_take(host_lock_in(folder), ana);
  REQUIRE(held);
  CHECK_FALSE(SharedLock::try_take(host_lock_in(folder), ana));
  CHECK(contains(shared_lock_holder(host_lock_in(folder)), "process " + std::to_string(::getpid()) + " of "));
}

// A child process that takes the lock with `take` and holds it until it is killed.
template <typename Take>
pid_t holding_child(const fs::path& folder, const Take& take) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = take();
    if (held) std::ofstream(folder / "taken") << "yes";
    ::pause();
    ::_exit(0);
  }
  REQUIRE(becomes_true(tests::patience, [&] { return fs::exists(folder / "taken"); }));
  return child;
}

// From now on each flock of this process fails, as on a network file system without locks.
bool forbid_flock() {
  std::array<sock_filter, 4> steps{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{steps.size(), steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("one process at a time holds the host, described by its process, user, command, yard and time") {
  const TemporaryFolder folder;
  {
    const auto held = SharedLock::try_take(host_lock_in(folder.path), ana);
    REQUIRE(held);
    CHECK_FALSE(SharedLock::try_take(host_lock_in(folder.path), {"trainyard run second.toml", "/tmp/yard"}));
    const std::string holder = shared_lock_holder(host_lock_in(folder.path));
    CHECK(holder.starts_with("process " + std::to_string(::getpid()) + " of "));
    CHECK(contains(holder, " (trainyard run first.toml, yard /home/ana/yard), since 20"));
  }
  CHECK(SharedLock::try_take(host_lock_in(folder.path), ana));
}

TEST_CASE(
    "a waiting process gets one message with the holder, and gets the host when the holder ends or is "
    "killed") {
  const TemporaryFolder folder;
  const pid_t child =
      holding_child(folder.path, [&] { return SharedLock::try_take(host_lock_in(folder.path), ana); });
  const std::atomic<int> stop = 0;
  std::vector<std::string> reported;
  const auto lock = SharedLock::wait(host_lock_in(folder.path), ana, stop, [&](const std::string& holder) {
    reported.push_back(holder);
    ::kill(child, SIGKILL);
  });
  CHECK(lock);
  REQUIRE(reported.size() == 1);
  CHECK(contains(reported[0], "process " + std::to_string(child) + " of "));
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a signal ends the wait for the host at once") {
  const TemporaryFolder folder;
  const auto held = SharedLock::try_take(host_lock_in(folder.path), ana);
  std::atomic<int> stop = 0;
  CHECK_FALSE(SharedLock::wait(host_lock_in(folder.path), ana, stop, [&](const std::string&) { stop = 1; }));
}

TEST_CASE("all users can open the lock of the host, whatever the umask is") {
  const TemporaryFolder folder;
  const mode_t before = ::umask(0077);
  { const auto held = SharedLock::try_take(host_lock_in(folder.path), ana); }
  ::umask(before);
  struct stat found {};
  REQUIRE(::stat((folder.path / file_name).c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0666);
}

TEST_CASE("a link, a pipe or a second name in place of the lock is refused, and its target is not touched") {
  const TemporaryFolder folder;
  const fs::path file = folder.path / file_name, other = folder.path / "precious";
  std::ofstream(other) << "do not touch";
  fs::create_symlink(other, file);
  CHECK(contains(refusal(folder.path), file.string() + ", the lock of this host: it is a link"));
  fs::remove(file);
  fs::create_hard_link(other, file);
  CHECK(contains(refusal(folder.path),
                 file.string() + ", the lock of this host, is a hard link of another file"));
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0666) == 0);
  CHECK(contains(refusal(folder.path), "is not a plain file"));
  CHECK(contains(refusal(folder.path), "TRAINYARD_HOST_LOCK"));
  CHECK(text_of(other) == "do not touch");
}

TEST_CASE("the holder of a host is a process that lives, also if the file names one that has ended") {
  const TemporaryFolder folder;
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  std::ofstream(folder.path / file_name)
      << ended << "\nana\ntrainyard run old.toml\n/old\n2026-11-20T09:30\n";
  const pid_t stranger = holding_child(folder.path, [&] {
    return ::flock(::open((folder.path / file_name).c_str(), O_RDONLY), LOCK_EX) == 0;
  });
  CHECK_FALSE(SharedLock::try_take(host_lock_in(folder.path), ana));
  const std::string holder = shared_lock_holder(host_lock_in(folder.path));
  CHECK_MESSAGE(holder.starts_with("process " + std::to_string(stranger) + " of "), holder);
  CHECK_MESSAGE(holder.ends_with("), which is not trainyard or did not write its name"), holder);
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
  CHECK(SharedLock::try_take(host_lock_in(folder.path), ana));
}

TEST_CASE("a lock that another user planted is used without harm, or the error names that user") {
  const TemporaryFolder folder;
  fs::permissions(folder.path, fs::perms(01777));
  const fs::path file = folder.path / file_name;
  std::ofstream(file) << "";
  fs::permissions(file, fs::perms(0444));
  {
    const WithoutRights nobody;
    check_holds(folder.path);
  }
  fs::permissions(file, fs::perms::none);
  const WithoutRights nobody;
  const std::string error = refusal(folder.path);
  CHECK_MESSAGE(
      contains(error, "cannot open " + file.string() + ", the lock of this host: Permission denied"), error);
  struct stat found {};
  REQUIRE(::stat(file.c_str(), &found) == 0);
  if (found.st_uid != ::geteuid()) {
    CHECK_MESSAGE(contains(error, ". The file belongs to root"), error);
    CHECK(contains(error, "ask its owner or an administrator to remove it"));
  }
}

TEST_CASE("a file that is not a lock is never overwritten, whatever its name is") {
  const TemporaryFolder folder;
  for (const std::string& text :
       {std::string("the only copy of a thesis\n"), std::string("4711\n"), std::string("4711"),
        std::string("17\n4\n8\n15\n16\n23\n"), std::string("4711\nana\nrun\n/yard\n2026\nstarted\n"),
        std::string("4711\nana\nrun\n/yard\n2026\nmore\nstarted 1\n"),
        std::string("4711\nana\nrun\n/yard\n2026\nstarted 1\nmore\n")}) {
    std::ofstream(folder.path / file_name) << text;
    check_holds(folder.path);
    CHECK(text_of(folder.path / file_name) == text);
  }
}

TEST_CASE("what a killed holder left in a lock is overwritten by the next holder") {
  const TemporaryFolder folder;
  std::ofstream(folder.path / file_name)
      << "4711\nana\ntrainyard run old.toml\n/old\n2026-11-20\nstarted 1\n";
  const auto held = SharedLock::try_take(host_lock_in(folder.path), ana);
  REQUIRE(held);
  CHECK(contains(shared_lock_holder(host_lock_in(folder.path)),
                 " (trainyard run first.toml, yard /home/ana/yard), since 20"));
}

TEST_CASE("the user of a holder comes from the kernel, not from the file that everybody can write") {
  const TemporaryFolder folder;
  const auto held = SharedLock::try_take(host_lock_in(folder.path), ana);
  REQUIRE(held);
  const std::string holder = shared_lock_holder(host_lock_in(folder.path));
  std::string text = text_of(folder.path / file_name);
  const auto user = text.find('\n') + 1;
  text.replace(user, text.find('\n', user) - user, "mallory");
  std::ofstream(folder.path / file_name) << text;
  REQUIRE(contains(text_of(folder.path / file_name), "\nmallory\n"));
  CHECK(shared_lock_holder(host_lock_in(folder.path)) == holder);
}

TEST_CASE("a file system without locks is an error, not another holder") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const bool forbidden = forbid_flock();
    std::ofstream(folder.path / "refusal") << (forbidden ? refusal(folder.path) : "no seccomp");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const std::string text = text_of(folder.path / "refusal");
  if (text == "no seccomp") {
    MESSAGE("skipped: this kernel has no seccomp filters");
    return;
  }
  CHECK_MESSAGE(contains(text, "cannot lock " + (folder.path / file_name).string() +
                                   ", the lock of this host: No locks available"),
                text);
  CHECK(contains(text, "name a folder on a local disk with TRAINYARD_HOST_LOCK"));
}

TEST_CASE("if the lock cannot be created, the advice is another folder, not to remove the lock") {
  const TemporaryFolder folder;
  fs::permissions(folder.path, fs::perms(0555));
  const WithoutRights nobody;
  const std::string text = refusal(folder.path);
  CHECK_MESSAGE(contains(text, "cannot open " + (folder.path / file_name).string()), text);
  CHECK_MESSAGE(contains(text, "name a folder that you may write to with TRAINYARD_HOST_LOCK"), text);
  CHECK_FALSE(contains(text, "remove"));
}

TEST_CASE(
    "an attempt that fails is repeated for a moment, because a waiting sweep takes locks to check them") {
  const TemporaryFolder folder;
  auto held = SharedLock::try_take(host_lock_in(folder.path), ana);
  int tries = 0;
  CHECK(taken_soon([&] {
    if (++tries == 3) held.reset();
    return SharedLock::try_take(host_lock_in(folder.path), ana).has_value();
  }));
  CHECK(tries == 3);
  held = SharedLock::try_take(host_lock_in(folder.path), ana);
  CHECK_FALSE(taken_soon([&] { return SharedLock::try_take(host_lock_in(folder.path), ana).has_value(); }));
}

TEST_CASE("if the file of a lock was removed, the lock is taken on a new file") {
  const TemporaryFolder folder;
  { const auto held = SharedLock::try_take(host_lock_in(folder.path), ana); }
  fs::remove(folder.path / file_name);
  check_holds(folder.path);
}

TEST_CASE("TRAINYARD_HOST_LOCK is the folder of the lock, and an impossible folder is refused") {
  const TemporaryFolder folder;
  const char* before = std::getenv(host_lock_variable);
  const std::string kept = before == nullptr ? "" : before;
  ::setenv(host_lock_variable, (folder.path / "locks").c_str(), 1);
  CHECK(host_lock_folder() == folder.path / "locks");
  CHECK(fs::is_directory(folder.path / "locks"));
  fs::permissions(folder.path / "locks", fs::perms::all);
  CHECK_THROWS_WITH_AS(host_lock_folder(), doctest::Contains("every user can remove the locks of others in "),
                       UserError);
  fs::permissions(folder.path / "locks", fs::perms(01777));
  CHECK(host_lock_folder() == folder.path / "locks");
  ::setenv(host_lock_variable, "/proc/locks/none", 1);
  CHECK_THROWS_WITH_AS(host_lock_folder(),
                       doctest::Contains("TRAINYARD_HOST_LOCK must be a folder, but is /proc/locks/none ("),
                       UserError);
  std::ofstream(folder.path / "file") << "";
  ::setenv(host_lock_variable, (folder.path / "file").c_str(), 1);
  CHECK_THROWS_WITH_AS(host_lock_folder(), doctest::Contains("TRAINYARD_HOST_LOCK must be a folder, but is "),
                       UserError);
  ::unsetenv(host_lock_variable);
  CHECK((host_lock_folder() == "/run/lock" || host_lock_folder() == "/tmp"));
  if (before != nullptr) ::setenv(host_lock_variable, kept.c_str(), 1);
}
