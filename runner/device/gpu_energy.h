// The energy that an NVIDIA GPU has taken, from its own counter, which NVML reads: for the joules of an
// epoch. NVML (libnvidia-ml.so.1, a part of the driver) is opened when it is first needed and never linked:
// where it is not there, or the device has no such counter (those before Volta, parts of a shared GPU), there
// is no number and no error.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace trainyard::runner {

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

}  // namespace trainyard::runner
