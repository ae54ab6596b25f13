// What a rank sits on: a GPU, or on a CPU a share of the physical cores this process may use (affinity ∩
// cgroup quota). Ranks are pinned; one on a GPU has its part of the host's cores for its threads there. Where
// there are enough, each rank of a mesh has a device of its own; else rank (r, s) sits on device (r + s) mod
// D, so that ranks share devices evenly, and those of one replica or of one stage only where there are more
// of them than devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/file.h"
#include "experiments/launch.h"

namespace trainyard::orchestrator {

struct Device {
  std::string name;        // "cpu:0-1": its CPU numbers; "cuda:0"
  std::vector<int> cores;  // CPU numbers, one per physical core
  std::string gpu = {};    // its model; empty: it is no GPU
  std::string uuid = {};   // of a GPU
};

// A GPU as trainyard-runner sees it, so that CUDA_VISIBLE_DEVICES holds: what it hides is not here, and the
// others are counted from 0.
struct Gpu {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::int64_t memory_bytes = 0;
  std::string uuid;
};

// CPU numbers this process may use: one hyper-thread per physical core of the affinity mask, at most as many
// as the cgroup quota pays for.
std::vector<int> usable_cores();

// `wanted` devices (empty: min(2, cores)) with equal numbers of cores each; UserError where there are fewer
// cores than devices, with the number there are.
std::vector<Device> divide_cores(const std::vector<int>& cores, std::optional<int> wanted);

// `wanted` of the GPUs (empty: all), each with an equal part of the cores; where there are fewer cores than
// GPUs, some share one. UserError where there are fewer GPUs than wanted.
std::vector<Device> choose_gpus(const std::vector<Gpu>& gpus, const std::vector<int>& cores,
                                std::optional<int> wanted);

// What [machine] asks for: GPUs or cores. UserError where it wants GPUs and there are none; `cuda` is the
// CUDA that the runner was built for, empty for none.
std::vector<Device> host_devices(const experiments::Machine& machine, const std::vector<Gpu>& gpus,
                                 const std::string& cuda, const std::vector<int>& cores);

// The circumstances of runs on `devices`: the model of their GPUs and NCCL, or the CPU and none.
experiments::Circumstances on_devices(experiments::Circumstances here, const std::vector<Device>& devices);

// What a run leases where its ranks run elsewhere: as many as may be under way at a time, without cores.
std::vector<Device> launcher_slots(const experiments::Machine& machine);

// So many processes a core are never wanted: they would only fill the memory.
inline constexpr std::int64_t max_ranks_per_core = 16;

// Devices of the ranks of a run, in rank order. The ranks on a GPU divide its cores; those on a share of
// cores all have it. UserError for more ranks than the cores of the devices can carry.
std::vector<Device> place_ranks(const experiments::Strategy& strategy, const std::vector<Device>& devices);

// A warning at the strategy's place in the file for each run with more ranks than devices (its times are
// marked).
std::vector<experiments::Problem> device_problems(const experiments::Experiment& experiment,
                                                  const std::vector<Device>& devices);

// A warning at the strategy's place for each run of which one rank alone computes with more threads than the
// `cores` that this process may use. Ranks that together have more are no news: theirs are pinned, and where
// they share devices that is said.
std::vector<experiments::Problem> thread_problems(const experiments::Experiment& experiment,
                                                  std::size_t cores);

// UserError at its place in the file for a run whose ranks cannot talk as [machine] communicator says:
// experiments/transport.h. `nccl`: the version that would run.
void check_transport(const experiments::Experiment& experiment, const std::vector<Device>& devices,
                     const std::string& nccl);

// UserError at its place in the file for a run in a precision that `devices` do not compute in.
void check_precision(const experiments::Experiment& experiment, const std::vector<Device>& devices);

}  // namespace trainyard::orchestrator
