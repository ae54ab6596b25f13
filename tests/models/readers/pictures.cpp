#include "tests/models/readers/pictures.h"

#include <stdexcept>

#include <png.h>
#include <turbojpeg.h>

namespace trainyard::tests {

models::Picture pattern(std::int64_t height, std::int64_t width) {
  models::Picture picture{.height = height, .width = width, .pixels = {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < 3; ++c)
        picture.pixels.push_back(static_cast<std::uint8_t>((7 * y + 13 * x + 50 * c + x * y / 3) % 256));
  return picture;
}

std::vector<std::uint8_t> png_of(const models::Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> bytes(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, picture.pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error(image.message);
  bytes.resize(size);
  return bytes;
}

std::vector<std::uint8_t> jpeg_of(const models::Picture& picture) {
  tjhandle encoder = tjInitCompress();
  unsigned char* made = nullptr;
  unsigned long size = 0;
  const int result = tjCompress2(encoder, picture.pixels.data(), static_cast<int>(picture.width), 0,
                                 static_cast<int>(picture.height), TJPF_RGB, &made, &size, TJSAMP_444, 95, 0);
  if (result != 0) throw std::runtime_error("tjCompress2");
  std::vector<std::uint8_t> bytes(made, made + size);
  tjFree(made);
  tjDestroy(encoder);
  return bytes;
}

std::string as_text(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace trainyard::tests
