#include "models/error.h"
#include "runner/gpu.h"

namespace trainyard::runner {

std::optional<int> gpu_count() {
  return std::nullopt;
}

GpuFacts gpu_facts(int) {
  throw InternalError("a GPU was asked for in a build without CUDA");
}

}  // namespace trainyard::runner
