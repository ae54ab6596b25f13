// Digits drawn in the process, so that a machine without any download has something worth learning: the data
// sets `synthetic-digits` (28×28 grey) and `synthetic-color-digits` (32×32 RGB on a textured background).
// Each image is a pure function of (seed, part, index), so a part can be cut anywhere and extended later.
#pragma once

#include <cstdint>

#include "models/samples/samples.h"

namespace trainyard::models {

// Changes with every change of the pixels: it stands in the fingerprint.
inline constexpr int synthetic_digits_version = 1;

enum class SyntheticPart : std::uint64_t { train = 0, validation = 1, test = 2 };

// How many samples the data set has in `part`.
std::int64_t synthetic_size(SyntheticPart part);

// Each run of ten indices from a multiple of ten holds every digit once, in random order.
std::uint8_t synthetic_label(std::uint64_t seed, SyntheticPart part, std::int64_t index);

// The first `count` samples of `part`; square images with one channel or three.
Images draw_digits(const ImageShape& shape, std::uint64_t seed, SyntheticPart part, std::int64_t count);

}  // namespace trainyard::models
