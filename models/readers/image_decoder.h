// One PNG or JPEG as pixels, and the square of fixed size that is made of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace trainyard::models {

struct Picture {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  // [y, x, channel], red green blue
};

// By what the bytes begin with, not by the name. Grey becomes RGB, a palette its colors; what is transparent
// lies on black. UserError names `file` where the bytes are neither PNG nor JPEG, or are damaged.
Picture decode_picture(std::span<const std::uint8_t> bytes, const std::filesystem::path& file);

// Scaled so that the shorter side has `size` pixels, and of the longer side the middle: [channel, y, x].
// Linear interpolation; a larger picture is averaged with triangle weights as wide as the step, which is what
// Pillow's BILINEAR and PyTorch's interpolate(antialias=True) do.
std::vector<std::uint8_t> middle_square(const Picture& picture, std::int64_t size);

}  // namespace trainyard::models
