// What the kernel says about processors, as pure functions on the text of its files: CPU lists, hyper-thread
// siblings, cgroup quotas. `devices.cpp` reads the files and asks these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::orchestrator {

// "0-2,5" → {0, 1, 2, 5}; what is no list gives what was read so far.
std::vector<int> parse_cpu_list(std::string_view text);

// {0, 1, 2, 5} → "0-2,5".
std::string cpu_list_text(const std::vector<int>& cpus);

// One CPU of `allowed` per physical core, the lowest; `siblings` are the sets of CPUs that share a core.
std::vector<int> one_per_core(const std::vector<int>& allowed, const std::vector<std::vector<int>>& siblings);

// CPUs' worth of time that a cgroup grants, from "200000 100000" (v2 `cpu.max`); nothing for "max 100000".
std::optional<double> quota_of_cpu_max(std::string_view text);

// The same from v1's `cpu.cfs_quota_us` and `cpu.cfs_period_us`; nothing for −1.
std::optional<double> quota_of_cfs(std::string_view quota, std::string_view period);

// The paths of /proc/self/cgroup: the unified one, and the one whose controllers include `cpu`.
struct CgroupPaths {
  std::optional<std::string> unified;  // line "0::/path"
  std::optional<std::string> cpu;      // line "4:cpu,cpuacct:/path"
};
CgroupPaths parse_cgroup_paths(std::string_view text);

// The first `ceil(quota)` of `cores`, at least one.
std::vector<int> limited_by(const std::vector<int>& cores, std::optional<double> quota);

}  // namespace trainyard::orchestrator
