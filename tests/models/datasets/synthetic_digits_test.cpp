#include "models/datasets/synthetic_digits.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "models/datasets/digit_strokes.h"

using namespace trainyard;
using namespace trainyard::models;

namespace {

constexpr ImageShape grey{.channels = 1, .height = 28, .width = 28};
constexpr ImageShape color{.channels = 3, .height = 32, .width = 32};

std::string_view image(const Images& images, std::int64_t index) {
  const auto size = static_cast<std::size_t>(images.shape.pixels());
  return {reinterpret_cast<const char*>(images.pixels.data()) + size * static_cast<std::size_t>(index), size};
}

}  // namespace

TEST_CASE("an image depends only on seed, part and index, so a longer data set begins with a shorter one") {
  for (const ImageShape& shape : {grey, color}) {
    const Images few = draw_digits(shape, 7, SyntheticPart::train, 25);
    const Images more = draw_digits(shape, 7, SyntheticPart::train, 60);
    REQUIRE(few.size() == 25);
    REQUIRE(few.pixels.size() == static_cast<std::size_t>(25 * shape.pixels()));
    CHECK(std::equal(few.pixels.begin(), few.pixels.end(), more.pixels.begin()));
    CHECK(std::equal(few.labels.begin(), few.labels.end(), more.labels.begin()));
  }
}

TEST_CASE("another seed or part gives other images, and no image occurs twice") {
  std::set<std::string> seen;
  for (const std::uint64_t seed : {0, 1}) {
    for (const SyntheticPart part : {SyntheticPart::train, SyntheticPart::validation, SyntheticPart::test}) {
      const Images images = draw_digits(grey, seed, part, 100);
      for (std::int64_t i = 0; i < images.size(); ++i) seen.insert(std::string(image(images, i)));
    }
  }
  CHECK(seen.size() == 600);
}

TEST_CASE("every ten samples have each digit once, in changing order") {
  std::set<std::string> orders;
  for (std::int64_t ten = 0; ten < 50; ++ten) {
    std::string order;
    for (std::int64_t i = 0; i < 10; ++i) {
      order += static_cast<char>('0' + synthetic_label(0, SyntheticPart::train, ten * 10 + i));
    }
    orders.insert(order);
    std::sort(order.begin(), order.end());
    CHECK(order == "0123456789");
  }
  CHECK(orders.size() > 45);
  CHECK(draw_digits(grey, 0, SyntheticPart::test, 12).labels[11] ==
        synthetic_label(0, SyntheticPart::test, 11));
}

TEST_CASE("in every grey image the digit is bright, and most of the image is dark") {
  const Images images = draw_digits(grey, 0, SyntheticPart::validation, 500);
  for (std::int64_t i = 0; i < images.size(); ++i) {
    CAPTURE(i);
    std::string pixels(image(images, i));
    const auto bright = std::count_if(pixels.begin(), pixels.end(),
                                      [](char pixel) { return static_cast<unsigned char>(pixel) > 120; });
    CHECK(bright >= 8);
    CHECK(bright < 784 / 2);
  }
}

// The expected hashes are from this program itself. They show that every machine draws the same pixels. If
// pixels change, synthetic_digits_version must change, because run keys depend on it.
TEST_CASE("the digits have not changed since version 1") {
  const auto drawn = [](const ImageShape& shape) {
    const Images images = draw_digits(shape, 0, SyntheticPart::train, 200);
    Sha256 hash;
    hash.update(images.pixels);
    hash.update(std::vector<std::uint8_t>(images.labels.begin(), images.labels.end()));
    return hash.hex();
  };
  REQUIRE(synthetic_digits_version == 1);
  CHECK(drawn(grey) == "22c2c72795bad5112418175fae378a91d691731ed24bd9c1e01d941d5f751429");
  CHECK(drawn(color) == "61b574c7b6c9dc095539c2583102a010a21bee86d6c188aceaf55e348567e7c8");
}

TEST_CASE(
    "a curve goes through its points, a closed curve has no corner at its end, and a line is unchanged") {
  const Stroke line{false, {{0, 0}, {1, 0}, {1, 1}}};
  CHECK(flattened(line).size() == 3);
  const Stroke ring{true, {{0.5F, 0}, {1, 0.5F}, {0.5F, 1}, {0, 0.5F}, {0.5F, 0}}};
  const std::vector<Point> points = flattened(ring);
  REQUIRE(points.size() % 4 == 1);
  const std::size_t pieces = points.size() / 4;
  for (std::size_t i = 0; i < ring.points.size(); ++i) {
    CHECK(points[i * pieces].x == ring.points[i].x);
    CHECK(points[i * pieces].y == ring.points[i].y);
  }
  const std::size_t last = points.size() - 1;  // a ring is symmetric about x = 0.5, also at its end
  CHECK(points[1].x - 0.5F == doctest::Approx(0.5F - points[last - 1].x));
  CHECK(points[1].y == doctest::Approx(points[last - 1].y));
}

TEST_CASE("every digit has a glyph, within the unit square") {
  for (int digit = 0; digit < 10; ++digit) {
    CAPTURE(digit);
    REQUIRE_FALSE(glyphs_of(digit).empty());
    for (const Glyph& glyph : glyphs_of(digit)) {
      for (const Stroke& stroke : glyph) {
        CHECK(stroke.points.size() >= 2);
        for (const Point& point : stroke.points) {
          CHECK(std::min(point.x, point.y) >= 0);
          CHECK(std::max(point.x, point.y) <= 1);
        }
      }
    }
  }
}
