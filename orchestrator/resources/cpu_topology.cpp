#include "orchestrator/resources/cpu_topology.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "base/files.h"

namespace trainyard::orchestrator {

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream in(text);
  for (int first = 0; in >> first;) {
    int last = first;
    char after = '\n';
    if (in >> after && after == '-') in >> last >> after;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (after != ',') break;
  }
  return cpus;
}

std::vector<int> hyper_threads_of(int cpu) {
  return parse_cpu_list(
      whole_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"));
}

std::vector<int> one_per_core(const std::vector<int>& allowed,
                              const std::vector<std::vector<int>>& siblings) {
  const std::set<int> all(allowed.begin(), allowed.end());
  std::set<int> cores = all;
  for (const std::vector<int>& core : siblings) {
    auto other = std::ranges::find_if(core, [&](int cpu) { return all.contains(cpu); });
    if (other == core.end()) continue;
    while (++other != core.end()) cores.erase(*other);
  }
  return {cores.begin(), cores.end()};
}

std::optional<double> cpu_quota(const std::string& text) {
  std::istringstream in(text);
  double quota = 0, period = 0;
  return in >> quota >> period && quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

std::vector<int> limited_by(const std::vector<int>& cores, std::optional<double> quota) {
  if (!quota) return cores;
  const auto paid = static_cast<std::size_t>(std::max(1.0, std::ceil(*quota)));
  return {cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(std::min(paid, cores.size()))};
}

}  // namespace trainyard::orchestrator
