#include "base/error.h"
#include "runner/device/gpu.h"

namespace trainyard::runner {

namespace {

InternalError without_cuda() {
  return InternalError("a GPU was requested in a build without CUDA");
}

}  // namespace

std::optional<int> gpu_count() {
  return std::nullopt;
}

GpuFacts gpu_facts(int) {
  throw without_cuda();
}

void use_gpu(int) {
  throw without_cuda();
}

void synchronize_gpu(int) {
  throw without_cuda();
}

DeviceMemory gpu_memory(int) {
  throw without_cuda();
}

void reset_gpu_peak(int) {
  throw without_cuda();
}

at::Tensor copied_beside(const at::Tensor&, int) {
  throw without_cuda();
}

MakeCudaGraph gpu_graphs() {
  throw without_cuda();
}

MakeMark gpu_marks() {
  throw without_cuda();
}

}  // namespace trainyard::runner
