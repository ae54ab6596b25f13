// Parsers of the kernel's processor files: CPU lists, hyper-thread siblings and cgroup quotas.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trainyard::orchestrator {

// "0-2,5" → {0, 1, 2, 5}. Stops at the first part that is not a number or range.
std::vector<int> parse_cpu_list(const std::string& text);

// The CPUs of the core of `cpu`. Empty if the kernel does not tell it.
std::vector<int> hyper_threads_of(int cpu);

// The lowest allowed CPU of each physical core. `siblings`: CPUs that share a core, in
// ascending order.
std::vector<int> one_per_core(const std::vector<int>& allowed, const std::vector<std::vector<int>>& siblings);

// CPU quota of a cgroup in CPUs, from its quota and period: "200000 100000". Empty for "max 100000" and "-1 100000".
std::optional<double> cpu_quota(const std::string& text);

// The first `ceil(quota)` of `cores`, at least one.
std::vector<int> limited_by(const std::vector<int>& cores, std::optional<double> quota);

}  // namespace trainyard::orchestrator
