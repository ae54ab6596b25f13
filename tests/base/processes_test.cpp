#include <algorithm>
#include <csignal>
#include <ctime>

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"

using namespace trainyard;

namespace {

std::uint64_t boot_ticks() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / 1'000'000'000;
}

}  // namespace

TEST_CASE(
    "a process has its parent, name, start time, user and environment, also if its name looks like fields") {
  const std::uint64_t before = boot_ticks();
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, "a) Z 1 (b");
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, WUNTRACED);
  const auto process = facts_of(child);
  REQUIRE(process);
  CHECK(process->pid == child);
  CHECK(process->name == "a) Z 1 (b");
  CHECK(process->parent == ::getpid());
  CHECK(process->start_ticks >= before);
  CHECK(process->start_ticks <= boot_ticks());
  CHECK(process->arguments_begin < process->arguments_end);
  CHECK(users_of(child)->effective == ::geteuid());
  CHECK(environment_of(child).find("PATH=") != std::string::npos);
  for (const auto& pids : {own_children(), all_processes()}) CHECK(std::ranges::count(pids, child) == 1);
  ::kill(child, SIGKILL);
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  CHECK_FALSE(facts_of(child));
  CHECK(std::ranges::count(own_children(), child) == 1);
  ::waitpid(child, nullptr, 0);
  CHECK_FALSE(users_of(child));
  CHECK(environment_of(child).empty());
  CHECK(own_children().empty());
}

TEST_CASE("the cgroups of a process are found in both versions") {
  CHECK(cgroup_path("0::/user.slice/user-1000.slice\n") == "/user.slice/user-1000.slice");
  const std::string both = "9:name=systemd:/\n3:cpuset:/a\n2:cpu,cpuacct:/docker/f00\n0::/b\n";
  CHECK(cgroup_path(both, "cpu") == "/docker/f00");
  CHECK(cgroup_path(both) == "/b");
  CHECK_FALSE(cgroup_path("3:cpuset:/a\n", "cpu"));
}
