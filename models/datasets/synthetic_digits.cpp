#include "models/datasets/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "base/error.h"
#include "models/datasets/digit_strokes.h"
#include "models/samples/random.h"

// The pixels are the same on every machine. Therefore this file uses only + − × ÷ and square root, whose
// rounding IEEE 754 defines, and is compiled without fused multiply-add (see CMakeLists.txt).

namespace trainyard::models {

namespace {

enum Purpose : std::uint64_t { order = 1, drawing = 2 };

float between(SplitMix64& random, double low, double high) {
  return static_cast<float>(random.between(low, high));
}

// Size, position and shape of a digit in the image, in pixels.
struct Pose {
  float width, height, slant, cosine, sine, x, y, pen;
};

Pose random_pose(SplitMix64& random, float side) {
  Pose pose{};
  pose.height = side * between(random, 0.5, 0.75);
  pose.width = pose.height * between(random, 0.5, 0.85);
  pose.slant = between(random, -0.35, 0.35);
  const float tangent = between(random, -0.13, 0.13);  // of half the rotation angle: ±15°
  pose.cosine = (1 - tangent * tangent) / (1 + tangent * tangent);
  pose.sine = 2 * tangent / (1 + tangent * tangent);
  pose.x = side / 2 + side * between(random, -0.11, 0.11);
  pose.y = side / 2 + side * between(random, -0.11, 0.11);
  pose.pen = between(random, 1, 1.9);
  return pose;
}

Point placed(const Pose& pose, const Point& point) {
  const float y = (point.y - 0.5F) * pose.height;
  const float x = (point.x - 0.5F) * pose.width - pose.slant * y;
  return {pose.x + pose.cosine * x - pose.sine * y, pose.y + pose.sine * x + pose.cosine * y};
}

// How much of each pixel a digit covers, 0 – 1, row by row.
class Ink {
 public:
  explicit Ink(std::int64_t side)
      : side_(static_cast<int>(side)), covered_(static_cast<std::size_t>(side * side)) {}

  // Draw a line of half-width `pen` with round ends. Its edge is blurred over one pixel.
  void draw(const Point& from, const Point& to, float pen) {
    const float reach = pen + 0.5F;
    const int left = first(std::min(from.x, to.x) - reach);
    const int right = end(std::max(from.x, to.x) + reach);
    const int bottom = end(std::max(from.y, to.y) + reach);
    const Point along{to.x - from.x, to.y - from.y};
    const float length2 = along.x * along.x + along.y * along.y;
    for (int y = first(std::min(from.y, to.y) - reach); y < bottom; ++y) {
      const float down = static_cast<float>(y) + 0.5F - from.y;
      float* row = &covered_[static_cast<std::size_t>(y * side_)];
      for (int x = left; x < right; ++x) {  // no branch, so that the loop is vectorised
        const float across = static_cast<float>(x) + 0.5F - from.x;
        const float dot = across * along.x + down * along.y;
        const float t = length2 > 0 ? std::clamp(dot / length2, 0.0F, 1.0F) : 0.0F;
        const float dx = across - t * along.x;
        const float dy = down - t * along.y;
        const float cover = std::min(1.0F, reach - std::sqrt(dx * dx + dy * dy));
        row[x] = std::max(row[x], cover);
      }
    }
  }

  std::span<const float> covered() const { return covered_; }

 private:
  int first(float edge) const { return std::clamp(static_cast<int>(edge), 0, side_); }
  int end(float edge) const { return std::clamp(static_cast<int>(edge) + 1, 0, side_); }

  int side_;
  std::vector<float> covered_;
};

Ink digit_ink(SplitMix64& random, int digit, std::int64_t side) {
  const auto glyphs = glyphs_of(digit);
  const Pose pose = random_pose(random, static_cast<float>(side));
  Ink ink(side);
  for (Stroke stroke : glyphs[random.below(glyphs.size())]) {
    for (Point& point : stroke.points) {
      point.x += between(random, -0.06, 0.06);
      point.y += between(random, -0.06, 0.06);
    }
    const std::vector<Point> points = flattened(stroke);
    for (std::size_t i = 1; i < points.size(); ++i) {
      ink.draw(placed(pose, points[i - 1]), placed(pose, points[i]), pose.pen);
    }
  }
  return ink;
}

int sum_of_bytes(std::uint32_t bits) {
  const std::uint32_t pairs = (bits & 0x00FF00FFU) + (bits >> 8U & 0x00FF00FFU);
  return static_cast<int>((pairs & 0xFFFFU) + (pairs >> 16U));
}

// Approximately normal values with mean 0 and standard deviation 1: sums of four random bytes. One draw
// gives two values.
std::vector<float> noise(SplitMix64& random, std::size_t count) {
  std::vector<std::uint32_t> bits(count + count % 2);
  for (std::size_t i = 0; i < bits.size(); i += 2) {
    const std::uint64_t two = random.next();
    bits[i] = static_cast<std::uint32_t>(two);
    bits[i + 1] = static_cast<std::uint32_t>(two >> 32U);
  }
  std::vector<float> noise(count);
  for (std::size_t i = 0; i < count; ++i)
    noise[i] = (static_cast<float>(sum_of_bytes(bits[i])) - 510) / 147.8F;
  return noise;
}

std::uint8_t as_pixel(float value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F) + 0.5F);
}

void draw_grey(SplitMix64& random, const Ink& ink, std::uint8_t* pixels) {
  const float paper = between(random, 0, 20);
  const float contrast = between(random, 180, 235);
  const float grain = between(random, 5, 20);
  const std::span<const float> covered = ink.covered();
  const std::vector<float> grains = noise(random, covered.size());
  for (std::size_t i = 0; i < covered.size(); ++i)
    pixels[i] = as_pixel(paper + contrast * covered[i] + grain * grains[i]);
}

// A grid of `cells`² random values, interpolated linearly.
class Texture {
 public:
  Texture(SplitMix64& random, float middle, float spread, int side)
      : side_(side), scale_(static_cast<float>(cells - 1) / static_cast<float>(side)) {
    std::array<float, cells * cells> values{};
    for (float& value : values) value = middle + spread * between(random, -1, 1);
    for (int row = 0; row < cells; ++row) {
      for (int x = 0; x < side; ++x) {
        const float across = static_cast<float>(x) * scale_;
        const int column = static_cast<int>(across);
        const float u = across - static_cast<float>(column);
        const float* left = &values[static_cast<std::size_t>(row * cells + column)];
        lines_.push_back((1 - u) * left[0] + u * left[1]);
      }
    }
  }
  std::vector<float> line(int y) const {
    const float down = static_cast<float>(y) * scale_;
    const int row = static_cast<int>(down);
    const float v = down - static_cast<float>(row);
    const auto side = static_cast<std::size_t>(side_);
    const float* above = &lines_[static_cast<std::size_t>(row) * side];
    std::vector<float> line(side);
    for (std::size_t x = 0; x < side; ++x) line[x] = (1 - v) * above[x] + v * above[side + x];
    return line;
  }

 private:
  static constexpr int cells = 5;
  int side_;
  float scale_;
  std::vector<float> lines_;  // the grid interpolated along x, row by row
};

void draw_color(SplitMix64& random, const Ink& ink, int side, std::uint8_t* pixels) {
  const float grain = between(random, 4, 10);
  for (int channel = 0; channel < 3; ++channel) {
    const float paper = between(random, 40, 130);
    const float pen = paper + between(random, 70, 130);
    const Texture texture(random, paper, 40, side);
    const float* covered = ink.covered().data();
    const std::vector<float> grains = noise(random, ink.covered().size());
    const float* grains_of_line = grains.data();
    for (int y = 0; y < side; ++y, pixels += side, covered += side, grains_of_line += side) {
      const std::vector<float> ground = texture.line(y);
      for (int x = 0; x < side; ++x) {
        const float under = ground[static_cast<std::size_t>(x)];
        pixels[x] = as_pixel(under + covered[x] * (pen - under) + grain * grains_of_line[x]);
      }
    }
  }
}

}  // namespace

std::int64_t synthetic_size(SyntheticPart part) {
  return part == SyntheticPart::train ? 4000 : 1000;
}

std::uint8_t synthetic_label(std::uint64_t seed, SyntheticPart part, std::int64_t index) {
  const auto ten = static_cast<std::uint64_t>(index / 10);
  const auto digits =
      permutation(10, mixed_seed({seed, Purpose::order, static_cast<std::uint64_t>(part), ten}));
  return static_cast<std::uint8_t>(digits[static_cast<std::size_t>(index % 10)]);
}

Images draw_digits(const ImageShape& shape, std::uint64_t seed, SyntheticPart part, std::int64_t count) {
  if (shape.height != shape.width || (shape.channels != 1 && shape.channels != 3)) {
    throw InternalError("synthetic digits must be square and have 1 or 3 channels");
  }
  const auto size = static_cast<std::size_t>(shape.pixels());
  Images images{.shape = shape,
                .pixels = std::vector<std::uint8_t>(size * static_cast<std::size_t>(count)),
                .labels = {}};
  for (std::int64_t index = 0; index < count; ++index) {
    const std::uint8_t label = synthetic_label(seed, part, index);
    SplitMix64 random(mixed_seed(
        {seed, Purpose::drawing, static_cast<std::uint64_t>(part), static_cast<std::uint64_t>(index)}));
    const Ink ink = digit_ink(random, label, shape.height);
    std::uint8_t* pixels = images.pixels.data() + size * static_cast<std::size_t>(index);
    if (shape.channels == 1) {
      draw_grey(random, ink, pixels);
    } else {
      draw_color(random, ink, static_cast<int>(shape.height), pixels);
    }
    images.labels.push_back(label);
  }
  return images;
}

}  // namespace trainyard::models
