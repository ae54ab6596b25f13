#include "orchestrator/resources/cpu_topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/files.h"

namespace trainyard::orchestrator {

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc{}) break;
    int last = first;
    if (read.ptr < end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{}) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (read.ptr >= end || *read.ptr != ',') break;
    at = read.ptr + 1;
  }
  return cpus;
}

std::vector<int> hyper_threads_of(int cpu) {
  return parse_cpu_list(
      whole_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"));
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

std::vector<int> one_per_core(const std::vector<int>& allowed,
                              const std::vector<std::vector<int>>& siblings) {
  const auto is_allowed = [&](int cpu) {
    return std::find(allowed.begin(), allowed.end(), cpu) != allowed.end();
  };
  std::vector<int> cores;
  for (const int cpu : allowed) {
    const bool has_lower_sibling = std::any_of(siblings.begin(), siblings.end(), [&](const auto& core) {
      return std::find(core.begin(), core.end(), cpu) != core.end() &&
             std::any_of(core.begin(), core.end(),
                         [&](int other) { return other < cpu && is_allowed(other); });
    });
    if (!has_lower_sibling) cores.push_back(cpu);
  }
  std::sort(cores.begin(), cores.end());
  return cores;
}

namespace {

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<double> ratio(std::optional<double> quota, std::optional<double> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

}  // namespace

std::optional<double> quota_of_cpu_max(std::string_view text) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return ratio(number(text.substr(0, space)), number(text.substr(space + 1)));
}

std::optional<double> quota_of_cfs(std::string_view quota, std::string_view period) {
  return ratio(number(quota), number(period));
}

std::vector<int> limited_by(const std::vector<int>& cores, std::optional<double> quota) {
  if (!quota) return cores;
  const auto paid = static_cast<std::size_t>(std::max(1.0, std::ceil(*quota)));
  return {cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(std::min(paid, cores.size()))};
}

}  // namespace trainyard::orchestrator
