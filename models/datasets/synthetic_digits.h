// Generated images of digits, for training without a download: the data sets `synthetic-digits` (28×28 grey)
// and `synthetic-color-digits` (32×32 RGB on a textured background). Each image is a pure function of (seed,
// part, index), so a part can be shortened or extended.
#pragma once

#include <cstdint>

#include "models/samples/samples.h"

namespace trainyard::models {

// Part of the fingerprint. Increase it if pixels change.
inline constexpr int synthetic_digits_version = 1;

enum class SyntheticPart : std::uint64_t { train = 0, validation = 1, test = 2 };

// The number of samples in `part`.
std::int64_t synthetic_size(SyntheticPart part);

// The digit in an image. Every ten images, beginning at a multiple of ten, have each digit once in random
// order.
std::uint8_t synthetic_label(std::uint64_t seed, SyntheticPart part, std::int64_t index);

// The first `count` samples of `part`: square images with one or three channels.
Images draw_digits(const ImageShape& shape, std::uint64_t seed, SyntheticPart part, std::int64_t count);

}  // namespace trainyard::models
