// What an epoch takes of a rank's device: the energy of its training, from the beginning of the first step to
// the end of the last, and the memory of its tensors at their most. Of a CPU neither is known.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>

namespace trainyard::runner {

// The energy that an NVIDIA GPU has taken, from its own counter, which NVML reads: for the joules of an
// epoch. NVML (libnvidia-ml.so.1, a part of the driver) is opened when it is first needed and never linked:
// where it is not there, or the device has no such counter (those before Volta, parts of a shared GPU), there
// is no number and no error.

inline constexpr const char* nvml_library = "libnvidia-ml.so.1";

class GpuEnergy {
 public:
  // The counter of the GPU that CUDA calls `uuid` ("GPU-…"); nothing where there is none.
  static std::optional<GpuEnergy> of(const std::string& uuid, const std::string& library = nvml_library);

  // Since the driver was loaded, in steps of a millijoule; the device brings it up to date some ten times a
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
  std::optional<double> energy_joules;
  std::string energy_device;  // whose counter that is: ranks that share a GPU read the same
  std::optional<std::int64_t> peak_bytes;
};

class DeviceMeter {
 public:
  explicit DeviceMeter(const at::Device& device);
  // The same with a counter from elsewhere.
  DeviceMeter(const at::Device& device, std::optional<GpuEnergy> counter);

  // Around the training of an epoch; the device has nothing to do at either time.
  void training_begins();
  void training_ends();
  // Of the epoch: what was trained since `training_begins`, and the most memory since then.
  DeviceUse use() const;

 private:
  at::Device device_;
  std::optional<GpuEnergy> counter_;
  std::optional<double> joules_before_;
  std::optional<double> energy_joules_;
};

}  // namespace trainyard::runner
