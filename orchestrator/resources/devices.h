// Devices: what runs lease, and what ranks run on.
//
// - Runs lease GPUs, or physical cores that this process may use (affinity ∩ cgroup quota).
// - A rank runs on a GPU, or on a group of cores: one core for each of its threads. Groups are formed per
//   run, because runs may have different numbers of threads.
// - Ranks are pinned. A rank on a GPU gets a part of the host's cores for its threads.
// - If there are enough devices, each rank of a mesh has its own. Otherwise rank (r, s) is on device (r + s)
//   mod D. Ranks of one replica or one stage share a device only if there are more of them than devices. With parts of
//   layers rank n is on device (n + n / D) mod D: ranks share devices evenly, and parts of a stage have different ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "experiments/design/experiment.h"
#include "experiments/protocol/launch.h"

namespace trainyard::orchestrator {

struct Device {
  std::string name;        // "cpu:0-1" (its CPU numbers) or "cuda:0"
  std::vector<int> cores;  // CPU numbers, one per physical core
  std::string gpu = {};    // GPU model; empty: not a GPU
  std::string uuid = {};   // of a GPU
};

// A GPU that trainyard-runner sees. CUDA_VISIBLE_DEVICES applies: hidden GPUs are left out, and the others
// are numbered from 0.
struct Gpu {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::int64_t memory_bytes = 0;
  std::string uuid;
};

// CPU numbers this process may use: one hyper-thread per physical core of the affinity mask, limited by the
// cgroup quota.
std::vector<int> usable_cores();

// One device per core. CPU runs lease these.
std::vector<Device> core_devices(const std::vector<int>& cores);

// Groups cores by `cores_each`, in order, and drops the rest. Other devices stay as they are.
std::vector<Device> grouped(const std::vector<Device>& devices, std::size_t cores_each);

// `wanted` groups (empty: min(2, cores)) with equal numbers of cores. UserError if there are fewer cores than
// groups.
std::vector<Device> divide_cores(const std::vector<int>& cores, std::optional<int> wanted);

// Devices for the ranks of a run, formed from those of the host.
// - GPUs and slots stay as they are.
// - Cores are grouped: one group per rank, with one core per thread. The number of cores and `wanted`
//   ([machine] devices; empty: "auto") limit the number of groups.
// - If the run sets no `threads`, the groups are those of `divide_cores`.
// - There must be a core for each thread of a rank: `check_threads`.
std::vector<Device> devices_for(const experiments::Run& run, const std::vector<Device>& host,
                                std::optional<int> wanted);

// Devices with different names.
std::size_t distinct_devices(const std::vector<Device>& devices);

// Number of the host's devices among these: each core, GPU or slot counts once.
std::size_t leased_devices(const std::vector<Device>& devices);

// `wanted` GPUs (empty: all), each with an equal part of the cores. If there are fewer cores than GPUs, some
// share one. UserError if there are fewer GPUs than wanted.
std::vector<Device> choose_gpus(const std::vector<Gpu>& gpus, const std::vector<int>& cores,
                                std::optional<int> wanted);

// Devices that [machine] asks for: GPUs, or all cores as one device each. `cuda`: CUDA version of the runner,
// empty for none. UserError if GPUs are required and there are none, or if more devices than cores are
// required.
std::vector<Device> host_devices(const experiments::Machine& machine, const std::vector<Gpu>& gpus,
                                 const std::string& cuda, const std::vector<int>& cores);

// Circumstances of runs on `devices`: GPU models and NCCL, or the CPU without NCCL.
experiments::Circumstances on_devices(experiments::Circumstances here, const std::vector<Device>& devices);

// Slots that runs lease if their ranks run elsewhere: one per simultaneous run, without cores.
std::vector<Device> launcher_slots(const experiments::Machine& machine);

// More processes per core would only fill the memory.
inline constexpr std::int64_t max_ranks_per_core = 16;

// Devices of the ranks of a run, in rank order. Ranks on one GPU divide its cores. Ranks on one group of
// cores share them all. UserError for more ranks than the cores of the devices can run.
std::vector<Device> place_ranks(const experiments::Strategy& strategy, const std::vector<Device>& devices);

// If a rank on a GPU has fewer cores than `threads`, gives each rank so many of the host's. Returns whether
// ranks then share cores.
bool widen_to_threads(std::vector<Device>& placed, const std::vector<Device>& host, std::int64_t threads);

// Warnings for strategies with more ranks than devices. Each is at the strategy's
// place in the file.
std::vector<Problem> device_problems(const experiments::Experiment& experiment,
                                     const std::vector<Device>& devices);

// Throws UserError if a rank has more threads than `cores`: those that this process may use, or cpus_per_task
// under another launcher. The error is at the place of `threads` in the file.
void check_threads(const experiments::Experiment& experiment, std::size_t cores);

// Throws UserError if the ranks of a run cannot communicate as [machine] communicator requires
// (experiments/protocol/transport.h). The error is at the strategy's place in the file. `nccl`: NCCL version
// of the runner.
void check_transport(const experiments::Experiment& experiment, const std::vector<Device>& devices,
                     const std::string& nccl);

// Throws UserError if `devices` do not support the precision of a run. The error is at its place in the file.
void check_precision(const experiments::Experiment& experiment, const std::vector<Device>& devices);

}  // namespace trainyard::orchestrator
