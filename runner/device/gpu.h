// All that is asked of CUDA itself, and no more than that: what to do with the answers is decided elsewhere,
// where it can be tested without a GPU. `gpu.cpp` asks; in a build without CUDA `gpu_absent.cpp` stands in
// its place, which has no GPU, so nothing but `gpu_count` is ever called there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "runner/device/device.h"
#include "runner/device/step_times.h"

namespace trainyard::runner {

// A graph of a device's work: captured once, replayed often.

// What a device's library for graphs can do; a fake one in tests.
class CudaGraph {
 public:
  virtual ~CudaGraph() = default;
  virtual void capture(
      const std::function<void()>& work) = 0;    // what `work` gives to the device, which does not do it
  virtual void replay() = 0;                     // does it, at the same addresses
  virtual std::unique_ptr<TimeMark> mark() = 0;  // in the work that is captured, passed in each replay
};
using MakeCudaGraph = std::function<std::unique_ptr<CudaGraph>()>;

// How many GPUs this process sees; nothing where this build has no CUDA.
std::optional<int> gpu_count();

GpuFacts gpu_facts(int index);

// This thread computes there from now on: on a stream of its own, which CUDA graphs can be captured from.
void use_gpu(int index);
void synchronize_gpu(int index);

struct GpuMemory {
  std::int64_t all_bytes = 0;
  std::int64_t free_bytes = 0;  // also what the allocator holds and no tensor has
  std::int64_t peak_bytes = 0;  // of all tensors together
};
GpuMemory gpu_memory(int index);
void reset_gpu_peak(int index);

// `pinned` on the GPU: copied on another stream, for which the current one waits.
at::Tensor copied_beside(const at::Tensor& pinned, int index);

// Graphs of the current stream's work.
MakeCudaGraph gpu_graphs();

// A mark in the current stream's work; its time is known once the work before it is done.
MakeMark gpu_marks();

}  // namespace trainyard::runner
