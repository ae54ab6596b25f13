// The device of a rank: its assignment, name, properties and memory, and the error if its memory is full.
// A device is a set of CPU cores ("cpu:0-1" in launch files) or a GPU ("cuda:1"). Functions that need CUDA
// are in `runner/device/gpu.h`.
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

// The device that a rank computes on.
struct DeviceAssignment {
  at::Device device = at::Device(at::DeviceType::CPU);
  std::string name = "cpu";  // "cuda:1"; the name in the launch file if it has one
  std::string gpu = {};      // identifies the GPU among all hosts; empty for a CPU
};

// The assignment of this rank. UserError if there is no such device.
DeviceAssignment resolve_device(const experiments::Launch& launch, const Environment& environment);

// If the launch leaves the choice of the GPU to the rank, writes the name of its GPU to `launch`.
void name_device(experiments::Launch& launch, const Environment& environment);

// The GPU of a rank among the GPUs that it sees: number `local_rank` modulo their count. Slurm may show each
// task its own GPUs only, or show the same GPUs to all tasks of a host. UserError if the rank sees no GPU.
std::string visible_gpu(int local_rank, std::optional<int> visible_gpus);

// The bytes that LibTorch could not allocate, from its error message ("Tried to allocate 2.00 GiB"). Empty
// for other errors.
std::optional<std::int64_t> bytes_refused(const std::string& error);

// Memory of a device. 0 is unknown.
struct DeviceMemory {
  std::int64_t all_bytes = 0;
  std::int64_t free_bytes = 0;  // including memory that the allocator has reserved and no tensor uses
  std::int64_t peak_bytes = 0;  // of all tensors of this rank, since it began or `reset_peak_device_bytes`
};

// Error with the model, the batch and the memory that they need. `device` is the name in the launch file.
UserError out_of_memory(const experiments::Run& run, const std::string& device, std::int64_t refused_bytes,
                        const DeviceMemory& memory);

// Properties of a GPU.
struct GpuFacts {
  int index = 0;                  // "cuda:0"
  std::string name;               // "NVIDIA H200"
  std::int64_t memory_bytes = 0;  // total
  std::string uuid;               // "GPU-…", as in nvidia-smi and NVML
};

// The GPUs that this process sees, in the order of CUDA_VISIBLE_DEVICES. Empty in a build without CUDA.
std::vector<GpuFacts> gpus();
nlohmann::ordered_json to_json(const std::vector<GpuFacts>& gpus);

// LibTorch's device for "cpu", "cpu:0-1" or "cuda:1". LibTorch has a single CPU, and the cores are the
// process's affinity. UserError for any other name, for a GPU that does not exist, or in a build without
// CUDA.
at::Device device_named(const std::string& name);

// The same with `gpu_count` GPUs. Empty means a build without CUDA.
at::Device device_named(const std::string& name, std::optional<int> gpu_count);

// If `device` is the CPU, the following functions do nothing, or return 0 or an empty value.

// Selects the GPU for this thread, on a separate stream, and turns on cuDNN's benchmark mode. Call it before
// anything is computed there.
void set_device(at::Device device);
void synchronize(at::Device device);  // waits until the device has finished all its work

DeviceMemory device_memory(at::Device device);
void reset_peak_device_bytes(at::Device device);

// Rows of a pinned CPU tensor, copied to `device`. The host gathers them. The copy uses another stream, so
// the device can still compute the previous step.
at::Tensor fetched(const at::Tensor& rows, const at::Tensor& indices, at::Device device);

// 16 bytes as "GPU-01234567-89ab-cdef-0123-456789abcdef".
std::string gpu_uuid(const std::string& bytes);

}  // namespace trainyard::runner
