// What an epoch takes of a rank's device: the energy of its training, from the beginning of the first step to
// the end of the last, and the memory of its tensors at their most. Of a CPU neither is known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "runner/device/gpu_energy.h"

namespace trainyard::runner {

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
