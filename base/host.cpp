#include "base/host.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/files.h"
#include "base/number.h"
#include "base/text.h"

namespace trainyard {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return printable_line(name.data());
}

Hardware hardware() {
  utsname kernel{};
  ::uname(&kernel);
  Hardware found{::sysconf(_SC_NPROCESSORS_ONLN),
                 std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE),
                 fmt::format("{} {}", kernel.sysname, kernel.release)};
  const std::string name = "PRETTY_NAME=\"", release = whole_file("/etc/os-release");
  if (const auto begin = release.find(name); begin != std::string::npos) {
    const auto end = release.find('"', begin + name.size());
    found.system.insert(0, release.substr(begin + name.size(), end - begin - name.size()) + ", ");
  }
  found.system = printable_line(found.system);
  return found;
}

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (last > i) text += '-' + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

bool is_executable(const fs::path& file) {
  std::error_code none;
  return fs::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0;
}

std::optional<fs::path> program_path(const std::string& name, const fs::path& folder) {
  const auto there = [](const fs::path& file) {
    return is_executable(file) ? std::optional(file) : std::nullopt;
  };
  if (name.find('/') != std::string::npos) return there(folder / name);
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "/bin:/usr/bin" : path) +
                             ":");  // getline drops an empty last folder without it
  for (std::string each; std::getline(folders, each, ':');)
    if (auto found = there(folder / each / name)) return found;
  return std::nullopt;
}

namespace {

fs::path file_of(int pid, const char* name) {
  return fs::path("/proc") / std::to_string(pid) / name;
}

}  // namespace

std::optional<ProcessFacts> facts_of(int pid, bool ended_too) {
  const std::string stat = whole_file(file_of(pid, "stat"));  // "4711 (name) S 1 …"
  const auto name_begin = stat.find('('), name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_begin > name_end) return std::nullopt;
  std::istringstream text(stat.substr(name_end + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(text), {}};
  constexpr std::size_t first = 3, parent = 4, reaped_user = 16, reaped_system = 17, start = 22, begin = 48,
                        end = 49;  // as proc(5) counts them
  ProcessFacts process{.pid = pid, .name = stat.substr(name_begin + 1, name_end - name_begin - 1)};
  if (fields.size() <= end - first) return std::nullopt;
  if ((fields[0] == "Z" || fields[0] == "X") && !ended_too) return std::nullopt;
  process.parent = parse_number<int>(fields[parent - first]).value_or(0);
  process.reaped_ticks = parse_number<std::uint64_t>(fields[reaped_user - first]).value_or(0) +
                         parse_number<std::uint64_t>(fields[reaped_system - first]).value_or(0);
  process.start_ticks = parse_number<std::uint64_t>(fields[start - first]).value_or(0);
  process.arguments_begin = parse_number<std::uintptr_t>(fields[begin - first]).value_or(0);
  process.arguments_end = parse_number<std::uintptr_t>(fields[end - first]).value_or(0);
  return process;
}

std::optional<ProcessUsers> users_of(int pid) {
  const std::string status = whole_file(file_of(pid, "status"));
  const auto line = status.find("\nUid:");
  if (line == std::string::npos) return std::nullopt;
  std::istringstream numbers(status.substr(line + 5));
  ProcessUsers users;
  numbers >> users.real >> users.effective;
  return numbers ? std::optional(users) : std::nullopt;
}

std::string environment_of(int pid) {
  return whole_file(file_of(pid, "environ"));
}

std::vector<int> all_processes() {
  std::vector<int> pids;
  for (const std::string& name : names_in("/proc"))
    if (const auto pid = parse_number<int>(name)) pids.push_back(*pid);
  return pids;
}

// The kernel lists the children of a thread, zombies too. Not all kernels have this list.
std::vector<int> own_children() {
  std::vector<int> pids;
  if (std::ifstream list(file_of(::getpid(), "task") / std::to_string(::getpid()) / "children"); list) {
    for (int pid = 0; list >> pid;) pids.push_back(pid);
    return pids;
  }
  for (const int pid : all_processes())
    if (const auto process = facts_of(pid); process && process->parent == ::getpid()) pids.push_back(pid);
  return pids;
}

// Lines: "4:memory:/a/b" or "4:cpu,cpuacct:/a" in version 1, "0::/a/b" in version 2.
std::optional<std::string> cgroup_path(const std::string& text, const std::string& controller) {
  for (const std::string& line : nonempty_lines(text)) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.find("," + controller + ",") != std::string::npos) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_memory_kills(const std::string& text) {
  std::istringstream lines(text);
  std::string name;
  std::int64_t count = 0;
  while (lines >> name >> count)
    if (name == "oom_kill") return count;
  return std::nullopt;
}

std::optional<std::int64_t> memory_kills() {
  return parse_memory_kills(whole_file("/proc/vmstat"));
}

}  // namespace trainyard
