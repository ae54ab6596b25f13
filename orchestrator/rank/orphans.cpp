#include "orchestrator/rank/orphans.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

Subreaper::Subreaper() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Subreaper::~Subreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, before_);
}

namespace {

struct Process {
  int pid = 0;
  int parent = 0;
  std::uint64_t start_ticks = 0;
};

// /proc/PID/stat: "pid (name, which may hold anything) state parent …". The start time is field 22.
std::optional<Process> read_process(int pid) {
  const std::string stat = whole_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  Process process{pid};
  char state = '?';
  fields >> state >> process.parent;
  std::string skipped;
  for (int place = 5; place < 22; ++place) fields >> skipped;
  fields >> process.start_ticks;
  if (!fields || state == 'Z' || state == 'X') return std::nullopt;
  return process;
}

// Whether the process was started with this token in its environment.
bool has_token(int pid, const std::string& token) {
  if (token.empty()) return false;
  const std::string wanted = std::string(token_variable) + "=" + token;
  std::istringstream entries(whole_file("/proc/" + std::to_string(pid) + "/environ"));
  for (std::string entry; std::getline(entries, entry, '\0');)
    if (entry == wanted) return true;
  return false;
}

std::vector<int> find(const std::function<bool(const Process&)>& wanted) {
  std::vector<int> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size())
      continue;
    if (pid == ::getpid()) continue;
    const auto process = read_process(pid);
    if (process && wanted(*process)) pids.push_back(pid);
  }
  return pids;
}

// Killed processes may leave their children to us. The next round finds these.
int end_all(const std::function<bool(const Process&)>& wanted) {
  std::set<int> ended;
  for (int round = 0; round < 400; ++round) {
    const auto pids = find(wanted);
    if (pids.empty()) break;
    for (const int pid : pids) {
      ::kill(pid, SIGKILL);
      ended.insert(pid);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (const int pid : ended) ::waitpid(pid, nullptr, WNOHANG);
  return static_cast<int>(ended.size());
}

bool has_no_child() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
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

std::optional<ProcessMark> mark_of(int pid) {
  const auto process = read_process(pid);
  if (!process) return std::nullopt;
  return ProcessMark{pid, process->start_ticks};
}

int end_children_with(const std::string& token) {
  if (has_no_child()) return 0;
  const int own = ::getpid();
  return end_all(
      [&](const Process& process) { return process.parent == own && has_token(process.pid, token); });
}

int end_leftovers(const LaunchedProcesses& launched) {
  const bool same_boot = !launched.boot_id.empty() && launched.boot_id == boot_id();
  const auto marked = [&](const Process& process) {
    return same_boot && std::any_of(launched.marks.begin(), launched.marks.end(), [&](const auto& mark) {
             return mark.pid == process.pid && mark.start_ticks == process.start_ticks;
           });
  };
  return end_all(
      [&](const Process& process) { return marked(process) || has_token(process.pid, launched.token); });
}

}  // namespace trainyard::orchestrator
