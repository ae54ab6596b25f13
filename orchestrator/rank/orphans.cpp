#include "orchestrator/rank/orphans.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/files.h"
#include "base/host.h"
#include "base/text.h"

namespace trainyard::orchestrator {

Subreaper::Subreaper() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Subreaper::~Subreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, before_);
}

namespace {

// Whether the process was started with this token in its environment.
bool has_token(int pid, const std::string& token) {
  const std::string entry = std::string(token_variable) + "=" + token + '\0';
  return !token.empty() && ('\0' + environment_of(pid)).find('\0' + entry) != std::string::npos;
}

// Whether the real and the effective user are those of this process.
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
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  std::array<char, 2 * bytes.size() + 1> digits{};
  for (std::size_t i = 0; i < bytes.size(); ++i) std::snprintf(&digits[2 * i], 3, "%02x", bytes[i]);
  return digits.data();
}

std::string boot_id() {
  std::string text = whole_file("/proc/sys/kernel/random/boot_id");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
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

namespace {

// Start of the earliest process of the launch. Empty if it is not known.
std::optional<std::uint64_t> first_ticks(const LaunchedProcesses& launched) {
  if (launched.since_ticks) return launched.since_ticks;
  std::optional<std::uint64_t> first;
  for (const ProcessMark& mark : launched.marks)
    if (mark.start_ticks > 0 && (!first || mark.start_ticks < *first)) first = mark.start_ticks;
  return first;
}

// Why the process with a recorded pid is not the recorded one. Empty if it is.
std::string difference(const ProcessFacts& process, const ProcessMark& mark, const std::string& token) {
  if (!is_of_own_user(process.pid)) return "belongs to another user";
  if (process.start_ticks != mark.start_ticks) return "was started at another time";
  if (!has_token(process.pid, token)) return "does not have the token of this attempt";
  return "";
}

// Kills the process if it is the wanted one. Its pid may be that of another one by now, so it is opened before it is
// looked at.
bool kill_if(int pid, const std::function<bool(const ProcessFacts&)>& wanted) {
  const FileDescriptor process_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto process = process_fd ? facts_of(pid) : std::nullopt;
  return process && wanted(*process) &&
         ::syscall(SYS_pidfd_send_signal, process_fd.get(), SIGKILL, nullptr, 0) == 0;
}

}  // namespace

EndedLeftovers end_leftovers(const LaunchedProcesses& launched) {
  EndedLeftovers found;
  const auto since = first_ticks(launched);
  if (!since || launched.boot_id.empty() || launched.boot_id != boot_id()) return found;
  std::set<int> others;
  for (const ProcessMark& mark : launched.marks) {
    if (mark.start_ticks == 0) continue;  // it had ended before it was recorded
    const auto process = facts_of(mark.pid);
    const std::string why = process ? difference(*process, mark, launched.token) : "";
    if (why.empty() || mark.pid == ::getpid() || !others.insert(mark.pid).second) continue;
    found.left_alone.push_back("process " + std::to_string(mark.pid) + " (" + printable_line(process->name) +
                               ") " + why);
  }
  const auto wanted = [&](const ProcessFacts& process) {
    return !others.contains(process.pid) && process.start_ticks >= *since && is_of_own_user(process.pid) &&
           has_token(process.pid, launched.token);
  };
  std::set<int> ended;
  const auto deadline = std::chrono::steady_clock::now() + kernel_patience;
  for (bool any = true; any && std::chrono::steady_clock::now() < deadline;) {
    any = false;
    for (const int pid : all_processes()) {
      if (pid == ::getpid() || !kill_if(pid, wanted)) continue;
      ended.insert(pid);
      any = true;
    }
    if (any) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  found.ended = static_cast<int>(ended.size());
  return found;
}

}  // namespace trainyard::orchestrator
