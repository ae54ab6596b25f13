#include "models/readers/image_decoder.h"

#include <doctest/doctest.h>

#include "tests/models/readers/pictures.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes first_bytes(const Bytes& bytes, std::size_t count) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

TEST_CASE("a picture is scaled as by PyTorch's interpolate with antialias, then cropped to its middle") {
  // expected: F.interpolate(x.double(), size, mode="bilinear", antialias=True), rounded, PyTorch 2.13
  CHECK(middle_square(pattern(10, 16), 4) ==
        Bytes{53,  89,  125, 160, 72,  109, 147, 184, 92,  132, 172, 209, 111, 152, 195, 199,
              103, 139, 175, 210, 122, 159, 197, 203, 142, 182, 209, 94,  161, 202, 159, 46,
              153, 189, 218, 109, 172, 209, 154, 45,  192, 198, 65,  56,  209, 131, 40,  80});
  CHECK(first_bytes(middle_square(pattern(3, 5), 6), 36) ==
        Bytes{10, 16, 23, 29, 36, 42, 12, 18, 25, 31, 38, 44, 15, 22, 28, 35, 42, 48,
              19, 25, 32, 39, 46, 52, 22, 29, 36, 43, 50, 56, 24, 31, 38, 45, 52, 58});
}

TEST_CASE("a square of the right size is unchanged in each channel") {
  const Picture picture = pattern(9, 9);
  const Bytes square = middle_square(picture, 9);
  for (std::size_t i = 0; i < 81; ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      CHECK(square[channel * 81 + i] == picture.pixels[i * 3 + channel]);
}

TEST_CASE("a PNG is decoded exactly, a JPEG nearly") {
  const Picture picture = pattern(10, 16);
  const Picture png = decode_picture(png_of(picture), "a.png");
  CHECK(png.height == 10);
  CHECK(png.width == 16);
  CHECK(png.pixels == picture.pixels);
  const Picture flat{.height = 8, .width = 24, .pixels = Bytes(8 * 24 * 3, 200)};
  const Picture jpeg = decode_picture(jpeg_of(flat), "named-wrongly.png");
  CHECK(jpeg.height == 8);
  CHECK(jpeg.width == 24);
  for (const std::uint8_t value : jpeg.pixels) CHECK(std::abs(value - 200) <= 1);
}

TEST_CASE("the error for a damaged picture, or a file of another kind, names the file") {
  const Bytes png = png_of(pattern(30, 30));
  const Bytes jpeg = jpeg_of(pattern(30, 30));
  const auto error = [](const Bytes& bytes) {
    return user_error_of([&] { decode_picture(bytes, "dir/x.png"); });
  };
  CHECK(error(first_bytes(png, png.size() / 2)).starts_with("dir/x.png: the PNG is damaged: "));
  CHECK(error(first_bytes(jpeg, jpeg.size() / 2)).starts_with("dir/x.png: the JPEG is damaged: "));
  CHECK(error({1, 2, 3}) ==
        "dir/x.png: byte 0: this is neither a PNG nor a JPEG; replace the picture or remove it from "
        "the folder");
  CHECK_FALSE(error({}).empty());
}
