#include "orchestrator/resources/processor_use.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/number.h"
#include "base/text.h"
#include "orchestrator/resources/cpu_topology.h"

namespace trainyard::orchestrator {

namespace {

constexpr double least_seconds = 0.1;  // see `use_problem`

// CPU number in "cpu12 …". Empty for the total of all CPUs and for other lines.
std::optional<int> cpu_of(const std::string& name) {
  return name.starts_with("cpu") ? parse_number<int>(name.substr(3)) : std::nullopt;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double processor_seconds(int who) {
  rusage use{};
  if (::getrusage(who, &use) != 0) return 0;
  return seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
}

// Use of these CPUs between two moments. Counters that decreased (a CPU was removed) count as zero.
CpuSeconds taken(const HostSeconds& before, const HostSeconds& after, const std::vector<int>& cpus) {
  CpuSeconds sum;
  for (const int cpu : cpus) {
    const auto from = before.find(cpu), to = after.find(cpu);
    if (from == before.end() || to == after.end()) continue;
    sum.busy += std::max(0.0, to->second.busy - from->second.busy);
    sum.stolen += std::max(0.0, to->second.stolen - from->second.stolen);
  }
  return sum;
}

}  // namespace

double others_limit_here() {
  const char* given = std::getenv(others_limit_variable);
  if (given == nullptr || *given == '\0') return others_limit;
  char* end = nullptr;
  const double limit = std::strtod(given, &end);
  if (*end == '\0' && std::isfinite(limit) && limit >= 0) return limit;
  throw UserError(std::string(others_limit_variable) + " is " + printable_line(given) + ", not a number >= 0",
                  "set it to a share of the leased cores, for example 0.02");
}

// Columns: user, nice, system, idle, iowait, irq, softirq, steal. Time of guests is included in user.
HostSeconds parse_proc_stat(std::string_view text, double ticks_per_second) {
  HostSeconds found;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const auto cpu = cpu_of(name);
    if (!cpu) continue;
    std::array<double, 8> ticks{};
    for (double& each : ticks) words >> each;
    const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    found[*cpu] = {busy / ticks_per_second, ticks[7] / ticks_per_second};
  }
  return found;
}

ProcessorTimes processor_times() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(now).count(),
          parse_proc_stat(whole_file("/proc/stat"), static_cast<double>(::sysconf(_SC_CLK_TCK))),
          processor_seconds(RUSAGE_SELF) + processor_seconds(RUSAGE_CHILDREN)};
}

std::optional<OtherUse> other_use(const ProcessorTimes& before, const ProcessorTimes& after,
                                  const std::vector<int>& leased, const std::vector<int>& watched) {
  const auto is_known = [&](int cpu) { return after.host.contains(cpu) && before.host.contains(cpu); };
  OtherUse use{.seconds = after.at - before.at};
  if (leased.empty() || use.seconds <= 0 || !std::ranges::all_of(leased, is_known)) return std::nullopt;
  const double own = after.own - before.own;
  const CpuSeconds here = taken(before.host, after.host, watched);
  if (here.busy < 0.5 * own - least_seconds) return std::nullopt;  // the kernel does not count these CPUs
  std::vector<int> all;
  for (const auto& [cpu, seconds] : after.host) all.push_back(cpu);
  const CpuSeconds everywhere = taken(before.host, after.host, all);
  use.stolen_seconds = here.stolen;
  use.other_seconds = std::max(0.0, here.busy - own) + here.stolen;
  use.share = use.other_seconds / (use.seconds * static_cast<double>(leased.size()));
  use.host_share = (std::max(0.0, everywhere.busy - own) + everywhere.stolen) /
                   (use.seconds * static_cast<double>(all.size()));
  return use;
}

std::string use_problem(const OtherUse& use, double limit) {
  if (use.share <= limit || use.other_seconds < least_seconds) return "";
  const auto percent = [](double share) {
    return share < 1 ? fmt::format("{:.2g} %", 100 * share) : fmt::format("{} %", std::lround(100 * share));
  };
  return fmt::format("other processes took {} of its cores (limit {})", percent(use.share), percent(limit));
}

std::vector<int> with_hyper_threads(const std::vector<int>& cpus) {
  std::set<int> all(cpus.begin(), cpus.end());
  for (const int cpu : cpus)
    for (const int sibling : hyper_threads_of(cpu)) all.insert(sibling);
  return {all.begin(), all.end()};
}

}  // namespace trainyard::orchestrator
