// Out of memory, said so that somebody can act on it: which model with which batch, and how much it would
// have taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "experiments/run/run.h"

namespace trainyard::runner {

// How much LibTorch could not allocate, from what it says ("Tried to allocate 2.00 GiB"); nothing for other
// errors.
std::optional<std::int64_t> bytes_refused(const std::string& error);

// Of a device; 0 where that is not known.
struct DeviceMemory {
  std::int64_t taken_bytes = 0;  // by this rank's tensors, when it had the most
  std::int64_t all_bytes = 0;    // that the device has
};

// `device` as a launch file names it.
UserError out_of_memory(const experiments::Run& run, const std::string& device, std::int64_t refused_bytes,
                        const DeviceMemory& memory);

}  // namespace trainyard::runner
