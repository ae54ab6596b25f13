#include "orchestrator/devices.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <sched.h>

#include "models/counted.h"
#include "orchestrator/cpu_topology.h"
#include "orchestrator/whole_file.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

std::vector<int> affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

std::vector<std::vector<int>> siblings(const std::vector<int>& cpus) {
  std::vector<std::vector<int>> cores;
  cores.reserve(cpus.size());
  for (const int cpu : cpus)
    cores.push_back(parse_cpu_list(
        whole_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list")));
  return cores;
}

// The folder of a cgroup and of all that contain it: the tightest limit holds.
std::vector<fs::path> with_parents(const fs::path& mount, const std::string& path) {
  std::vector<fs::path> folders{mount};
  for (const auto& part : fs::path(path).relative_path()) folders.push_back(folders.back() / part);
  return folders;
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

std::optional<double> cgroup_quota() {
  const CgroupPaths paths = parse_cgroup_paths(whole_file("/proc/self/cgroup"));
  std::optional<double> quota;
  for (const auto& folder : with_parents("/sys/fs/cgroup", paths.unified.value_or("/")))
    quota = smaller(quota, quota_of_cpu_max(whole_file(folder / "cpu.max")));
  for (const auto& folder : with_parents("/sys/fs/cgroup/cpu", paths.cpu.value_or("/")))
    quota = smaller(quota, quota_of_cfs(whole_file(folder / "cpu.cfs_quota_us"),
                                        whole_file(folder / "cpu.cfs_period_us")));
  return quota;
}

// Ranks on one GPU have each a part of its cores, or share them where there are more ranks than cores.
void divide_cores_of_gpus(std::vector<Device>& placed) {
  std::map<std::string, std::size_t> ranks, before;  // by device: how many there are, and were so far
  for (const Device& device : placed) ++ranks[device.name];
  for (Device& device : placed) {
    if (device.gpu.empty() || device.cores.empty()) continue;
    const std::size_t cores = device.cores.size();
    const std::size_t share = std::max<std::size_t>(1, cores / ranks[device.name]);
    const auto first =
        device.cores.begin() + static_cast<std::ptrdiff_t>(before[device.name]++ * share % cores);
    device.cores = std::vector<int>(first, first + static_cast<std::ptrdiff_t>(share));
  }
}

void check_mesh(const experiments::Strategy& strategy, const std::vector<Device>& devices) {
  if (strategy.replicas < 1 || strategy.stages < 1) throw InternalError("a mesh without ranks");
  if (devices.empty()) throw InternalError("no device to place ranks on");
  std::size_t cores = 0;
  for (const Device& device : devices) cores += device.cores.size();
  const auto most = max_ranks_per_core * static_cast<std::int64_t>(cores);
  if (strategy.replicas <= most / strategy.stages) return;
  throw UserError("strategy \"" + strategy.name + "\" has " + std::to_string(strategy.replicas) +
                      " replicas of " + models::counted(static_cast<std::size_t>(strategy.stages), "stage") +
                      ", more ranks than " + models::counted(cores, "core") + " can carry",
                  "use at most " + std::to_string(most) + " ranks here");
}

}  // namespace

std::vector<int> usable_cores() {
  const std::vector<int> allowed = affinity();
  return limited_by(one_per_core(allowed, siblings(allowed)), cgroup_quota());
}

std::vector<Device> divide_cores(const std::vector<int>& cores, std::optional<int> wanted) {
  const auto count =
      wanted ? static_cast<std::size_t>(std::max(*wanted, 0)) : std::min<std::size_t>(2, cores.size());
  if (count == 0) throw UserError("`[machine] devices` is 0", "a run needs at least one device");
  if (count > cores.size())
    throw UserError("`[machine] devices` is " + std::to_string(count) + ", but this process may use only " +
                        models::counted(cores.size(), "core"),
                    "set devices to at most " + std::to_string(cores.size()) + ", or \"auto\"");
  const std::size_t share = cores.size() / count;
  std::vector<Device> devices;
  for (std::size_t d = 0; d < count; ++d) {
    const auto first = cores.begin() + static_cast<std::ptrdiff_t>(d * share);
    const std::vector<int> own(first, first + static_cast<std::ptrdiff_t>(share));
    devices.push_back({"cpu:" + cpu_list_text(own), own});
  }
  return devices;
}

std::vector<Device> launcher_slots(const experiments::Machine& machine) {
  const int slots = machine.one_at_a_time() ? 1 : machine.jobs;
  Device slot{machine.launcher, {}};
  if (machine.gpus_elsewhere()) slot.gpu = "as the launcher chose";
  return std::vector<Device>(static_cast<std::size_t>(slots), slot);
}

std::vector<Device> place_ranks(const experiments::Strategy& strategy, const std::vector<Device>& devices) {
  check_mesh(strategy, devices);
  const bool own = strategy.world_size() <= static_cast<std::int64_t>(devices.size());
  std::vector<Device> placed;
  for (std::int64_t replica = 0; replica < strategy.replicas; ++replica)
    for (std::int64_t stage = 0; stage < strategy.stages; ++stage) {
      const std::int64_t place = own ? replica * strategy.stages + stage : replica + stage;
      placed.push_back(devices[static_cast<std::size_t>(place) % devices.size()]);
    }
  divide_cores_of_gpus(placed);
  return placed;
}

}  // namespace trainyard::orchestrator
