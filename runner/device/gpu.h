// All calls of CUDA. Decisions are made elsewhere, so that they can be tested without a GPU. Builds without
// CUDA use `gpu_absent.cpp` instead of `gpu.cpp`, and there only `gpu_count` may be called.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "runner/device/device.h"
#include "runner/device/step_times.h"

namespace trainyard::runner {

// A graph of a device's work: captured once and replayed often. Tests use a fake.
class CudaGraph {
 public:
  virtual ~CudaGraph() = default;
  virtual void capture(const std::function<void()>& work) = 0;  // records the device work without running it
  virtual void replay() = 0;                                    // runs it, at the same addresses
  virtual std::unique_ptr<TimeMark> mark() = 0;  // a mark in the captured work, passed in each replay
};
using MakeCudaGraph = std::function<std::unique_ptr<CudaGraph>()>;

// The number of GPUs that this process sees. Empty in a build without CUDA.
std::optional<int> gpu_count();

GpuFacts gpu_facts(int index);

// Selects the GPU for this thread, on a separate stream from which CUDA graphs can be captured.
void use_gpu(int index);
void synchronize_gpu(int index);

DeviceMemory gpu_memory(int index);
void reset_gpu_peak(int index);

// A copy of `pinned` on the GPU. It is copied on another stream, and the current stream waits for it.
at::Tensor copied_beside(const at::Tensor& pinned, int index);

// Makes graphs of the current stream's work.
MakeCudaGraph gpu_graphs();

// Makes marks in the current stream's work. The time of a mark is known once the work before it is done.
MakeMark gpu_marks();

}  // namespace trainyard::runner
