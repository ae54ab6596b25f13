// Energy and peak memory of a rank's device per epoch. Energy counts from the start of the first training
// step to the end of the last. Neither is measured on a CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "runner/device/step_times.h"

namespace trainyard::runner {

// Energy counter of an NVIDIA GPU, read through NVML (libnvidia-ml.so.1, a part of the driver). NVML is
// opened on first use and never linked. If it is missing there is no value, and no error. The same applies to
// devices without this counter: GPUs before Volta and parts of a shared GPU.
inline constexpr const char* nvml_library = "libnvidia-ml.so.1";

class GpuEnergy {
 public:
  // The counter of the GPU with CUDA's `uuid` ("GPU-…"). Empty if there is none.
  static std::optional<GpuEnergy> of(const std::string& uuid, const std::string& library = nvml_library);

  // Joules since the driver was loaded, in steps of a millijoule. The device updates it about ten times per
  // second.
  std::optional<double> joules() const;
  const std::string& uuid() const { return uuid_; }

 private:
  class Nvml;  // the opened library
  GpuEnergy(std::shared_ptr<const Nvml> nvml, void* device, std::string uuid);

  std::shared_ptr<const Nvml> nvml_;
  void* device_;  // nvmlDevice_t
  std::string uuid_;
};

struct DeviceUse {
  std::optional<double> energy_joules;  // none for epochs shorter than `shortest_measured`
  std::string energy_device;            // GPU of the counter; ranks that share a GPU read the same counter
  std::optional<std::int64_t> peak_bytes;
};

// The counter moves about ten times per second. So the energy of a second is known to about 10 %.
inline constexpr double shortest_measured = 1;  // seconds

class DeviceMeter {
 public:
  explicit DeviceMeter(const at::Device& device);
  // With another counter and another shortest epoch, for tests.
  DeviceMeter(const at::Device& device, std::optional<GpuEnergy> counter,
              double shortest = shortest_measured);

  // Call them before and after the training of an epoch, when the device is idle.
  void training_begins();
  void training_ends();
  // Energy of the training, and peak memory since `training_begins`.
  DeviceUse use() const;

 private:
  at::Device device_;
  std::optional<GpuEnergy> counter_;
  double shortest_;  // seconds
  Stopwatch watch_;
  std::optional<double> joules_before_;
  std::optional<double> energy_joules_;
};

}  // namespace trainyard::runner
