#include "orchestrator/leftovers.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/whole_file.h"

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
  int group = 0;
  int session = 0;
};

// /proc/PID/stat: "pid (name, which may hold anything) state parent group session …".
std::optional<Process> read_process(int pid) {
  const std::string stat = whole_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  Process process{pid};
  char state = '?';
  fields >> state >> process.parent >> process.group >> process.session;
  if (!fields || state == 'Z' || state == 'X') return std::nullopt;
  return process;
}

// The environment a process was started with.
bool runs_file(int pid, const fs::path& run_file) {
  const std::string wanted = "TRAINYARD_RUN=" + run_file.string();
  std::istringstream entries(whole_file("/proc/" + std::to_string(pid) + "/environ"));
  for (std::string entry; std::getline(entries, entry, '\0');)
    if (entry == wanted) return true;
  return false;
}

std::vector<int> find(const fs::path& run_file, const std::function<bool(const Process&)>& wanted) {
  std::vector<int> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size())
      continue;
    const auto process = read_process(pid);
    if (process && pid != ::getpid() && wanted(*process) && runs_file(pid, run_file)) pids.push_back(pid);
  }
  return pids;
}

// Killing one may orphan its children to us, which the next round finds.
int end_all(const fs::path& run_file, const std::function<bool(const Process&)>& wanted) {
  std::set<int> ended;
  for (int round = 0; round < 400; ++round) {
    const auto pids = find(run_file, wanted);
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

}  // namespace

int end_children_of_run(const fs::path& run_file) {
  const int own = ::getpid();
  return end_all(run_file, [own](const Process& process) { return process.parent == own; });
}

int end_launched(const std::vector<int>& pids, const fs::path& run_file) {
  const std::set<int> launched(pids.begin(), pids.end());
  return end_all(run_file, [&](const Process& process) {
    return launched.count(process.pid) != 0 || launched.count(process.group) != 0 ||
           launched.count(process.session) != 0;
  });
}

}  // namespace trainyard::orchestrator
