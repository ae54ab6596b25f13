// All that is asked of CUDA itself, and no more than that: what to do with the answers is decided elsewhere,
// where it can be tested without a GPU. `gpu.cpp` asks; in a build without CUDA `gpu_absent.cpp` stands in
// its place, which has no GPU, so nothing but `gpu_count` is ever called there.
#pragma once

#include <optional>

#include "runner/device.h"

namespace trainyard::runner {

// How many GPUs this process sees; nothing where this build has no CUDA.
std::optional<int> gpu_count();

GpuFacts gpu_facts(int index);

}  // namespace trainyard::runner
