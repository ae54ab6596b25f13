#include "models/readers/image_decoder.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include "base/error.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t largest_side = 32768;

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw UserError(fmt::format("{}: {}", file.string(), what),
                  "replace the picture or remove it from the folder");
}

// Limit for the size in a header, so that a wrong header costs little memory. A PNG has at most eight pixels
// per byte, and deflate compresses at most 1032 to 1 (zlib's technical notes). A JPEG has at most 64 pixels
// per bit.
constexpr std::int64_t most_pixels_per_byte = std::int64_t{8} * 1032;

void check_size(std::int64_t height, std::int64_t width, std::size_t bytes, const fs::path& file) {
  if (height < 1 || width < 1 || height > largest_side || width > largest_side ||
      height * width > most_pixels_per_byte * static_cast<std::int64_t>(bytes))
    fail(file, fmt::format("its header has the wrong size {}x{}", width, height));
  if (height * width > most_pixels)
    fail(file, fmt::format("it has {}x{} pixels, but at most {} are allowed", width, height, most_pixels));
}

Picture decode_png(std::span<const std::uint8_t> bytes, const fs::path& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> freed(&image, &png_image_free);
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0)
    fail(file, fmt::format("the PNG is damaged: {}", image.message));
  check_size(image.height, image.width, bytes.size(), file);
  image.format = PNG_FORMAT_RGB;
  Picture picture{.height = image.height, .width = image.width, .pixels = {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0 ||
      PNG_IMAGE_FAILED(image))
    fail(file, fmt::format("the PNG is damaged: {}", image.message));
  return picture;
}

Picture decode_jpeg(std::span<const std::uint8_t> bytes, const fs::path& file) {
  const std::unique_ptr<void, decltype(&tjDestroy)> decoder(tjInitDecompress(), &tjDestroy);
  if (!decoder) throw InternalError("TurboJPEG cannot be initialised");
  const auto size = static_cast<unsigned long>(bytes.size());
  const auto check = [&](int result) {
    if (result != 0) fail(file, fmt::format("the JPEG is damaged: {}", tjGetErrorStr2(decoder.get())));
  };
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colorspace = 0;
  check(tjDecompressHeader3(decoder.get(), bytes.data(), size, &width, &height, &subsampling, &colorspace));
  check_size(height, width, bytes.size(), file);
  Picture picture{.height = height, .width = width, .pixels = {}};
  picture.pixels.resize(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * 3);
  check(tjDecompress2(decoder.get(), bytes.data(), size, picture.pixels.data(), width, 0, height, TJPF_RGB,
                      TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS));
  return picture;
}

// The weights of one output pixel along an axis. They belong to the input pixels from `first` on, and add up
// to 1.
struct Tap {
  std::int64_t first = 0;
  std::vector<double> weights;
};

// Scale `length` pixels to `scaled`, and return the weights of the `size` pixels in the middle.
std::vector<Tap> taps(std::int64_t length, std::int64_t scaled, std::int64_t size) {
  const double step = static_cast<double>(length) / static_cast<double>(scaled);
  const double reach = std::max(step, 1.0);
  std::vector<Tap> all;
  for (std::int64_t i = (scaled - size) / 2; std::ssize(all) < size; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step;
    Tap tap{.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - reach + 0.5))),
            .weights = {}};
    const std::int64_t end = std::min(length, static_cast<std::int64_t>(std::floor(centre + reach + 0.5)));
    double sum = 0;
    for (std::int64_t x = tap.first; x < end; ++x) {
      tap.weights.push_back(std::max(0.0, 1 - std::abs(static_cast<double>(x) + 0.5 - centre) / reach));
      sum += tap.weights.back();
    }
    for (double& weight : tap.weights) weight /= sum;
    all.push_back(std::move(tap));
  }
  return all;
}

// The picture scaled along x only: [y of the picture, x of the output, channel].
std::vector<double> scaled_rows(const Picture& picture, const std::vector<Tap>& across) {
  const auto width = static_cast<std::size_t>(picture.width);
  std::vector<double> rows;
  rows.reserve(static_cast<std::size_t>(picture.height) * across.size() * 3);
  for (std::size_t y = 0; y < static_cast<std::size_t>(picture.height); ++y) {
    for (const Tap& tap : across) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        double sum = 0;
        for (std::size_t i = 0; i < tap.weights.size(); ++i)
          sum += tap.weights[i] *
                 picture.pixels[(y * width + static_cast<std::size_t>(tap.first) + i) * 3 + channel];
        rows.push_back(sum);
      }
    }
  }
  return rows;
}

}  // namespace

Picture decode_picture(std::span<const std::uint8_t> bytes, const fs::path& file) {
  if (bytes.size() >= 8 && png_sig_cmp(bytes.data(), 0, 8) == 0) return decode_png(bytes, file);
  if (bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff)
    return decode_jpeg(bytes, file);
  fail(file, "byte 0: this is neither a PNG nor a JPEG");
}

std::vector<std::uint8_t> middle_square(const Picture& picture, std::int64_t size) {
  const std::int64_t shorter = std::min(picture.height, picture.width);
  const auto across = taps(picture.width, picture.width * size / shorter, size);
  const auto down = taps(picture.height, picture.height * size / shorter, size);
  const std::vector<double> rows = scaled_rows(picture, across);
  std::vector<std::uint8_t> square;
  square.reserve(static_cast<std::size_t>(size * size * 3));
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (const Tap& tap : down) {
      for (std::size_t x = 0; x < across.size(); ++x) {
        double sum = 0;
        for (std::size_t i = 0; i < tap.weights.size(); ++i)
          sum += tap.weights[i] *
                 rows[((static_cast<std::size_t>(tap.first) + i) * across.size() + x) * 3 + channel];
        square.push_back(static_cast<std::uint8_t>(std::clamp(sum + 0.5, 0.0, 255.0)));
      }
    }
  }
  return square;
}

Images scaled(const Images& images, std::int64_t size) {
  const ImageShape& from = images.shape;
  Images result{.shape = {.channels = from.channels, .height = size, .width = size},
                .pixels = {},
                .labels = images.labels};
  if (result.shape == from) return images;
  result.pixels.reserve(static_cast<std::size_t>(images.size() * result.shape.pixels()));
  const auto area = static_cast<std::size_t>(from.height * from.width);
  const auto channels = static_cast<std::size_t>(from.channels);
  Picture picture{.height = from.height, .width = from.width, .pixels = std::vector<std::uint8_t>(area * 3)};
  for (std::int64_t sample = 0; sample < images.size(); ++sample) {
    const std::span<const std::uint8_t> image = images.image(sample);
    for (std::size_t i = 0; i < area * 3; ++i)  // grey: three equal channels
      picture.pixels[i] = image[std::min(i % 3, channels - 1) * area + i / 3];
    const std::vector<std::uint8_t> square = middle_square(picture, size);
    result.pixels.insert(result.pixels.end(), square.begin(), square.begin() + result.shape.pixels());
  }
  return result;
}

}  // namespace trainyard::models
