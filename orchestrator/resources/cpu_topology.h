// Parsers of the kernel's processor files: CPU lists, hyper-thread siblings and cgroup quotas.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::orchestrator {

// "0-2,5" → {0, 1, 2, 5}. Stops at the first part that is not a number or range.
std::vector<int> parse_cpu_list(std::string_view text);

// The CPUs of the core of `cpu`. Empty if the kernel does not tell it.
std::vector<int> hyper_threads_of(int cpu);

// {0, 1, 2, 5} → "0-2,5".
std::string cpu_list_text(const std::vector<int>& cpus);

// The lowest allowed CPU of each physical core. `siblings`: sets of CPUs that share a core.
std::vector<int> one_per_core(const std::vector<int>& allowed, const std::vector<std::vector<int>>& siblings);

// CPU quota of a cgroup in CPUs, from "200000 100000" (v2 `cpu.max`). Empty for "max 100000".
std::optional<double> quota_of_cpu_max(std::string_view text);

// The same from v1's `cpu.cfs_quota_us` and `cpu.cfs_period_us`. Empty for −1.
std::optional<double> quota_of_cfs(std::string_view quota, std::string_view period);

// The first `ceil(quota)` of `cores`, at least one.
std::vector<int> limited_by(const std::vector<int>& cores, std::optional<double> quota);

}  // namespace trainyard::orchestrator
