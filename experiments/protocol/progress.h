// Progress files `rank-<r>.progress`, for progress bars and hang detection. Results never depend on them.
// - A rank overwrites the 64 bytes in place, at most 5 times per second.
// - Layout, little endian: "TYP1" (4 bytes), phase u32, epoch u32, epochs u32, step u64, steps u64, loss f64,
//   correct fraction f64 (NaN if undefined), stamp u64 (CLOCK_MONOTONIC nanoseconds), reserved u32, CRC-32C
//   of the 60 bytes before it u32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/fd.h"

namespace trainyard::experiments {

enum class Phase : std::uint32_t { setup = 0, train = 1, validation = 2, test = 3, done = 4, probe = 5 };

struct Progress {
  Phase phase = Phase::setup;
  std::uint32_t epoch = 0;  // from 1
  std::uint32_t epochs = 0;
  std::uint64_t step = 0;   // completed steps of this epoch
  std::uint64_t steps = 0;  // all steps of this epoch
  double loss = 0;          // mean of the epoch so far; NaN if unknown
  double accuracy = 0;      // fraction; NaN if undefined
  std::uint64_t stamp = 0;  // nanoseconds, CLOCK_MONOTONIC
};

class ProgressWriter {
 public:
  explicit ProgressWriter(const std::filesystem::path& file);
  bool due() const;               // whether 200 ms have passed since the last write
  void write(Progress progress);  // sets the stamp; errors are ignored

 private:
  FileDescriptor fd_;
  std::uint64_t last_ = 0;
};

// The content of the file. Empty if it is missing, short or torn.
std::optional<Progress> read_progress(const std::filesystem::path& file);

}  // namespace trainyard::experiments
