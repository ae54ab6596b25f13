#include "orchestrator/rank/orphans.h"

#include <chrono>
#include <csignal>
#include <ctime>
#include <functional>
#include <optional>
#include <thread>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "base/host.h"
#include "base/sha256.h"
#include "base/text.h"
#include "orchestrator/rank/launch_secret.h"

namespace trainyard::orchestrator {

Subreaper::Subreaper() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Subreaper::~Subreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, before_);
}

namespace {

bool has_token(int pid, const std::string& token) {
  const std::string entry = std::string(token_variable) + "=" + token + '\0';
  return !token.empty() && ('\0' + environment_of(pid)).find('\0' + entry) != std::string::npos;
}

bool is_of_own_user(int pid) {
  const auto users = users_of(pid);
  return users && users->real == ::getuid() && users->effective == ::geteuid();
}

constexpr std::chrono::seconds kernel_patience(2);  // until the kernel has ended what was killed

// Kills a process and its group. One call kills the whole group, however fast its processes start others.
bool kill_with_group(int pid) {
  const pid_t group = ::getpgid(pid);
  if (group > 0 && group != ::getpgrp()) ::kill(-group, SIGKILL);
  return ::kill(pid, SIGKILL) == 0;
}

// Only this process reaps its children. So a listed pid cannot be that of another process before it is killed.
int end_children_if(const std::function<bool(int pid)>& wanted) {
  using Clock = std::chrono::steady_clock;
  std::set<int> killed;
  int ran = 0;
  for (auto deadline = Clock::now() + kernel_patience; Clock::now() < deadline;) {
    bool any = false, any_change = false;
    for (const int pid : own_children()) {
      if (!killed.contains(pid) && !wanted(pid)) continue;
      if (::waitpid(pid, nullptr, WNOHANG) == pid) {
        killed.erase(pid);
        any = any_change = true;  // it may have left children of its own
      } else if (kill_with_group(pid)) {
        const bool is_new = killed.insert(pid).second;
        if (is_new) ++ran;
        any = true;
        any_change = any_change || is_new;
      }
    }
    if (!any) break;
    if (any_change)
      deadline = Clock::now() + kernel_patience;
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return ran;
}

}  // namespace

std::string new_token() {
  return sha256_hex(random_challenge()).substr(0, 32);
}

std::string boot_id() {
  return first_line(whole_file("/proc/sys/kernel/random/boot_id"));
}

std::uint64_t ticks_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  constexpr std::uint64_t nanoseconds = 1'000'000'000;
  return static_cast<std::uint64_t>(now.tv_sec) * per_second +
         static_cast<std::uint64_t>(now.tv_nsec) * per_second / nanoseconds;
}

int end_children(const std::set<int>& except, std::uint64_t since_ticks) {
  return end_children_if([&](int pid) {
    if (except.contains(pid)) return false;
    const auto process = facts_of(pid);
    return !process || process->start_ticks >= since_ticks;  // an ended one is reaped
  });
}

int end_children_with(const std::string& token) {
  return end_children_if([&](int pid) { return has_token(pid, token); });
}

int end_leftovers(const LaunchedProcesses& launched) {
  if (launched.boot_id != boot_id()) return 0;
  // Its pid may be that of another process by now, so the process is opened before it is looked at.
  const auto kill_if_launched = [&](int pid) {
    const FileDescriptor process_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const auto process = process_fd ? facts_of(pid) : std::nullopt;
    return process && process->start_ticks >= launched.since_ticks && is_of_own_user(pid) &&
           has_token(pid, launched.token) &&
           ::syscall(SYS_pidfd_send_signal, process_fd.get(), SIGKILL, nullptr, 0) == 0;
  };
  std::set<int> ended;
  const auto deadline = std::chrono::steady_clock::now() + kernel_patience;
  for (bool any = true; any && std::chrono::steady_clock::now() < deadline;) {
    any = false;
    for (const int pid : all_processes()) {
      if (pid == ::getpid() || !kill_if_launched(pid)) continue;
      ended.insert(pid);
      any = true;
    }
    if (any) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return static_cast<int>(ended.size());
}

}  // namespace trainyard::orchestrator
