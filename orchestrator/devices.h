// What a rank sits on. On a CPU a device is a share of the physical cores this process may use (affinity ∩
// cgroup quota), pinned. Where there are enough, each rank of a mesh has a device of its own; else rank (r,
// s) sits on device (r + s) mod D, so that ranks share devices evenly, and those of one replica or of one
// stage only where there are more of them than devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/file.h"

namespace trainyard::orchestrator {

struct Device {
  std::string name;        // "cpu:0-1": its CPU numbers
  std::vector<int> cores;  // CPU numbers, one per physical core
};

// CPU numbers this process may use: one hyper-thread per physical core of the affinity mask, at most as many
// as the cgroup quota pays for.
std::vector<int> usable_cores();

// `wanted` devices (empty: min(2, cores)) with equal numbers of cores each; UserError where there are fewer
// cores than devices, with the number there are.
std::vector<Device> divide_cores(const std::vector<int>& cores, std::optional<int> wanted);

// What a run leases where its ranks run elsewhere: as many as may be under way at a time, without cores.
std::vector<Device> launcher_slots(const experiments::Machine& machine);

// So many processes a core are never wanted: they would only fill the memory.
inline constexpr std::int64_t max_ranks_per_core = 16;

// Devices of the ranks of a run, in rank order. UserError for more ranks than the cores of the devices can
// carry.
std::vector<Device> place_ranks(const experiments::Strategy& strategy, const std::vector<Device>& devices);

// A warning at the strategy's place in the file for each run with more ranks than devices (its times are
// marked).
std::vector<experiments::Problem> device_problems(const experiments::Experiment& experiment,
                                                  const std::vector<Device>& devices);

}  // namespace trainyard::orchestrator
