// The device of a rank: its name, its facts, how it is assigned, and what to do if its memory is full.
//
// Where a rank computes: the CPU cores that it is pinned to, or a GPU. Launch files name devices "cpu:0-1"
// and "cuda:1"; this turns such a name into LibTorch's device, or says why it cannot be one here. What only a
// build with CUDA can do is asked of `runner/device/gpu.h`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "experiments/protocol/launch.h"
#include "experiments/run/run.h"
#include "runner/device/rank_process.h"

namespace trainyard::runner {

// Where a rank sits: the device that it computes on, as the launch names it or as the launcher gave it.

struct DeviceAssignment {
  at::Device device = at::Device(at::DeviceType::CPU);
  std::string name = "cpu";  // "cuda:1"; where the launch has one, its name there
  std::string gpu = {};      // what tells it from the GPUs of all ranks on all hosts; empty: it is none
};

// Of this rank. UserError where there is no such device.
DeviceAssignment resolve_device(const experiments::Launch& launch, const Environment& environment);

// Where the launch leaves it to the rank which GPU it was given, puts that one's name there, for all that
// reads it.
void name_device(experiments::Launch& launch, const Environment& environment);

// Slurm may show each task its own GPUs alone, or all tasks of a host the same ones: so a rank takes that of
// its local rank, counted round those that it sees. UserError where it sees none.
std::string visible_gpu(int local_rank, std::optional<int> visible_gpus);

// Out of memory, said so that somebody can act on it: which model with which batch, and how much it would
// have taken.

// How much LibTorch could not allocate, from what it says ("Tried to allocate 2.00 GiB"); nothing for other
// errors.
std::optional<std::int64_t> bytes_refused(const std::string& error);

// Of a device; 0 where that is not known.
struct DeviceMemory {
  std::int64_t taken_bytes = 0;  // by this rank's tensors, when it had the most
  std::int64_t all_bytes = 0;    // that the device has
};

// `device` as a launch file names it.
UserError out_of_memory(const experiments::Run& run, const std::string& device, std::int64_t refused_bytes,
                        const DeviceMemory& memory);

// What is known of a GPU before anything runs on it.
struct GpuFacts {
  int index = 0;                  // "cuda:0"
  std::string name;               // "NVIDIA H200"
  std::int64_t memory_bytes = 0;  // all of it
  std::string uuid;               // "GPU-…", as nvidia-smi and NVML say it
};

// Those that CUDA_VISIBLE_DEVICES leaves to this process, in its order; none where this build has no CUDA.
std::vector<GpuFacts> gpus();
nlohmann::ordered_json to_json(const std::vector<GpuFacts>& gpus);

// "cpu", "cpu:0-1" (LibTorch knows one CPU; the cores are the process's affinity) or "cuda:1". UserError
// where this build has no CUDA, where there is no such GPU, and for any other name.
at::Device device_named(const std::string& name);

// The same where `gpu_count` GPUs are there; nothing: the build has no CUDA.
at::Device device_named(const std::string& name, std::optional<int> gpu_count);

// What follows has no effect and says nothing where `device` is the CPU.

// Before anything is computed there: the thread's work goes to that GPU, on a stream of its own, and cuDNN
// tries out which of its algorithms is fastest for each new shape.
void set_device(at::Device device);
void synchronize(at::Device device);  // waits until all work that was given to it is done

std::int64_t free_device_bytes(at::Device device);
DeviceMemory device_memory(at::Device device);
// The most that tensors took there at one time since the process began, or since `reset_peak_device_bytes`.
std::optional<std::int64_t> peak_device_bytes(at::Device device);
void reset_peak_device_bytes(at::Device device);

// Rows of a pinned tensor on the CPU, in a tensor on `device`: gathered by the host, which runs ahead of the
// device, and copied on another stream while the device still computes the step before.
at::Tensor fetched(const at::Tensor& rows, const at::Tensor& places, at::Device device);

// 16 bytes as "GPU-01234567-89ab-cdef-0123-456789abcdef".
std::string gpu_uuid(const std::string& bytes);

}  // namespace trainyard::runner
