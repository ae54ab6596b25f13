#include "runner/gpu.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAFunctions.h>

namespace trainyard::runner {

std::optional<int> gpu_count() {
  return c10::cuda::device_count();
}

GpuFacts gpu_facts(int index) {
  const cudaDeviceProp& properties = *at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index));
  return {index, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem),
          gpu_uuid({properties.uuid.bytes, sizeof properties.uuid.bytes})};
}

}  // namespace trainyard::runner
