// What runs lease, and what a rank sits on. Runs lease GPUs, or physical cores that this process may use
// (affinity ∩ cgroup quota). A rank sits on a GPU, or on a group of cores: one core for each of its threads.
// The groups are formed for each run by itself, since runs may have different numbers of threads.
//
// Ranks are pinned. A rank on a GPU has its part of the host's cores for its threads there. Each rank of a
// mesh has a device of its own if there are enough. Otherwise rank (r, s) sits on device (r + s) mod D, so
// that ranks share devices evenly, and those of one replica or of one stage only if there are more of them
// than devices.
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

// One device for each core: what runs on a CPU lease.
std::vector<Device> core_devices(const std::vector<int>& cores);

// Cores in groups of `cores_each`, in order; what is left over is in none. Other devices as they are.
std::vector<Device> grouped(const std::vector<Device>& devices, std::size_t cores_each);

// `wanted` groups (empty: min(2, cores)) with equal numbers of cores each. UserError if there are fewer cores
// than groups, with the number there are.
std::vector<Device> divide_cores(const std::vector<int>& cores, std::optional<int> wanted);

// The devices that a run's ranks are placed on, formed from all of the host's. GPUs and slots stay as they
// are. Cores are grouped: one group for each rank, with a core for each thread, as far as the cores and
// `wanted` ([machine] devices; empty: "auto") reach. Without `threads` as `divide_cores` does. The host must
// have a core for each thread of a rank: `check_threads`.
std::vector<Device> devices_for(const experiments::Run& run, const std::vector<Device>& host,
                                std::optional<int> wanted);

// How many of the host's devices these are: each core, GPU or slot once.
std::size_t leased_devices(const std::vector<Device>& devices);

// `wanted` of the GPUs (empty: all), each with an equal part of the cores; where there are fewer cores than
// GPUs, some share one. UserError where there are fewer GPUs than wanted.
std::vector<Device> choose_gpus(const std::vector<Gpu>& gpus, const std::vector<int>& cores,
                                std::optional<int> wanted);

// What [machine] asks for: GPUs, or all cores, one device each. UserError if it wants GPUs and there are
// none, or more devices than cores; `cuda` is the CUDA that the runner was built for, empty for none.
std::vector<Device> host_devices(const experiments::Machine& machine, const std::vector<Gpu>& gpus,
                                 const std::string& cuda, const std::vector<int>& cores);

// The circumstances of runs on `devices`: the model of their GPUs and NCCL, or the CPU and none.
experiments::Circumstances on_devices(experiments::Circumstances here, const std::vector<Device>& devices);

// What a run leases where its ranks run elsewhere: as many as may be under way at a time, without cores.
std::vector<Device> launcher_slots(const experiments::Machine& machine);

// So many processes a core are never wanted: they would only fill the memory.
inline constexpr std::int64_t max_ranks_per_core = 16;

// Devices of the ranks of a run, in rank order. The ranks on a GPU divide its cores; those on a group of
// cores all have it. UserError for more ranks than the cores of the devices can carry.
std::vector<Device> place_ranks(const experiments::Strategy& strategy, const std::vector<Device>& devices);

// Gives ranks on GPUs that have fewer cores than `threads` so many of the host's. Returns whether ranks share
// cores by that.
bool widen_to_threads(std::vector<Device>& placed, const std::vector<Device>& host, std::int64_t threads);

// A warning at the strategy's place in the file for each run with more ranks than devices (its times are
// marked).
std::vector<Problem> device_problems(const experiments::Experiment& experiment,
                                     const std::vector<Device>& devices);

// UserError at the place of `threads` for runs with more threads per rank than a rank can have cores: the
// `cores` that this process may use, or cpus_per_task under another launcher.
void check_threads(const experiments::Experiment& experiment, std::size_t cores);

// UserError at its place in the file for a run whose ranks cannot talk as [machine] communicator says:
// experiments/protocol/transport.h. `nccl`: the version that would run.
void check_transport(const experiments::Experiment& experiment, const std::vector<Device>& devices,
                     const std::string& nccl);

// UserError at its place in the file for a run in a precision that `devices` do not compute in.
void check_precision(const experiments::Experiment& experiment, const std::vector<Device>& devices);

}  // namespace trainyard::orchestrator
