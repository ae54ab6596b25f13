// Decode a PNG or JPEG, and scale it to a square.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "models/samples/samples.h"

namespace trainyard::models {

struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  // [y, x, channel]: red, green, blue
};

inline constexpr std::int64_t most_pixels = 1 << 26;  // decoded: 192 MiB

// Decode a picture. The first bytes decide the format, not the name of the file.
// - Grey and palette images become RGB. Transparent pixels are drawn on black.
// - UserError with the name of the file if the bytes are neither PNG nor JPEG, or are damaged, or if there
//   are more than `most_pixels`.
Picture decode_picture(std::span<const std::uint8_t> bytes, const std::filesystem::path& file);

// The picture scaled so that its shorter side has `size` pixels, then cropped to its middle: [channel, y, x].
// - A smaller picture is interpolated linearly.
// - A larger picture is averaged with triangle weights, as in Pillow's BILINEAR and PyTorch's
//   interpolate(antialias=True).
std::vector<std::uint8_t> middle_square(const Picture& picture, std::int64_t size);

// Every image scaled to `size` × `size` in the same way.
Images scaled(const Images& images, std::int64_t size);

}  // namespace trainyard::models
