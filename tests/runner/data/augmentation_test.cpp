
#include "runner/data/image_dataset.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/replicas.h"

namespace trainyard::runner::augmentation_test {

constexpr models::ImageShape shape{.channels = 3, .height = 9, .width = 11};
constexpr std::int64_t samples = 40;
const Augmentation& both = find_augmentation("flip-crop");

at::Tensor random_pixels(at::MemoryFormat format) {
  const models::Images images = testing::random_images(shape, samples);
  return at::tensor(images.pixels, at::kByte).view({samples, 3, 9, 11}).contiguous(format);
}

// The expected pixel (y, x) of a crop at (left, top) of the image, padded by 4 and then flipped.
int pixel(const at::Tensor& image, const at::Tensor& fill, bool flipped, std::int64_t left, std::int64_t top,
          std::int64_t channel, std::int64_t y, std::int64_t x) {
  const std::int64_t from_x = (flipped ? shape.width - 1 - x : x) + left - 4;
  const std::int64_t from_y = y + top - 4;
  const bool inside = from_x >= 0 && from_x < shape.width && from_y >= 0 && from_y < shape.height;
  return inside ? image[channel][from_y][from_x].item<int>() : fill[channel].item<int>();
}

std::int64_t number(const at::Tensor& drawn, std::int64_t sample, std::int64_t otherwise) {
  return drawn.defined() ? drawn[sample].item<std::int64_t>() : otherwise;
}

TEST_CASE("flips and crops of a batch equal those computed pixel by pixel, in either memory order") {
  const at::Tensor fill = at::tensor({7, 8, 9}, at::kByte);
  const at::Tensor indices = at::tensor({3, 0, 17, 39, 3}, at::kLong);
  for (const char* kind : {"flip", "crop", "flip-crop"}) {
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      CAPTURE(kind);
      const AugmentationDraws draws = draw_augmentation(find_augmentation(kind), samples, 2, 5);
      const at::Tensor images = random_pixels(format).index_select(0, indices).contiguous(format);
      const at::Tensor changed = augment(images, indices, draws, fill);
      CHECK(changed.is_contiguous(format));
      int wrong = 0;
      for (std::int64_t i = 0; i < 5; ++i) {
        const auto sample = indices[i].item<std::int64_t>();
        const at::Tensor image = images[i];
        for (std::int64_t c = 0; c < 3; ++c) {
          for (std::int64_t y = 0; y < 9; ++y) {
            for (std::int64_t x = 0; x < 11; ++x) {
              wrong += changed[i][c][y][x].item<int>() !=
                       pixel(image, fill, number(draws.flipped, sample, 0) == 1,
                             number(draws.left, sample, 4), number(draws.top, sample, 4), c, y, x);
            }
          }
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("the augmentation of a sample depends only on seed, epoch and sample number") {
  const at::Tensor fill = at::zeros({3}, at::kByte);
  const at::Tensor images = random_pixels(at::MemoryFormat::Contiguous);
  const at::Tensor all = at::arange(samples);
  const AugmentationDraws draws = draw_augmentation(both, samples, 2, 5);
  const at::Tensor whole = augment(images, all, draws, fill);
  for (const std::int64_t begin : {0, 7, 33}) {
    const at::Tensor indices = all.slice(0, begin, begin + 7);
    CHECK(at::equal(augment(images.index_select(0, indices), indices, draws, fill),
                    whole.index_select(0, indices)));
  }
  CHECK(at::equal(draw_augmentation(both, 10, 2, 5).left, draws.left.slice(0, 0, 10)));
  CHECK(at::equal(draw_augmentation(find_augmentation("crop"), samples, 2, 5).top, draws.top));
  CHECK(!at::equal(augment(images, all, draw_augmentation(both, samples, 2, 6), fill), whole));
  CHECK(!at::equal(augment(images, all, draw_augmentation(both, samples, 3, 5), fill), whole));
}

TEST_CASE("half of the samples are flipped, and each of the 81 crops is equally likely") {
  constexpr std::int64_t many = 81000;
  const AugmentationDraws draws = draw_augmentation(both, many, 1, 1);
  CHECK(std::abs(draws.flipped.to(at::kDouble).mean().item<double>() - 0.5) < 5 * 0.5 / std::sqrt(many));
  const at::Tensor counts = (draws.left * 9 + draws.top).bincount({}, 81).to(at::kDouble);
  CHECK(counts.size(0) == 81);
  // chi-square with 80 degrees of freedom: 124.8 at p = 0.001
  CHECK(((counts - 1000).square().sum() / 1000).item<double>() < 124.8);
}

TEST_CASE("without augmentation the images do not change") {
  const at::Tensor images = random_pixels(at::MemoryFormat::Contiguous);
  CHECK(augment(images, at::arange(samples), {}, at::zeros({3}, at::kByte)).is_same(images));
}

TEST_CASE("the crop of a standardised image is padded with black, as if it were cropped before") {
  const models::Images images = testing::random_images(shape, samples);
  for (const Target target : {Target::label, Target::input}) {
    const auto statistics = target == Target::label ? channel_statistics(images) : unit_scale(3);
    const ImageDataset split(images, statistics, target, at::kDouble, true);
    const at::Tensor indices = at::tensor({5, 6, 7, 8, 9}, at::kLong);
    const Batch batch = split.augmented(both, 4, 2)->gather(indices);
    const at::Tensor cropped =
        augment(random_pixels(at::MemoryFormat::Contiguous).index_select(0, indices), indices,
                draw_augmentation(both, samples, 4, 2), at::zeros({3}, at::kByte))
            .to(at::kDouble);
    for (std::int64_t c = 0; c < 3; ++c) {
      const auto& channel = statistics[static_cast<std::size_t>(c)];
      CHECK(at::allclose(batch.inputs[0].select(1, c),
                         (cropped.select(1, c) - channel.mean) / channel.deviation));
    }
    if (target == Target::input) CHECK(at::equal(batch.targets, batch.inputs[0]));
  }
}

}  // namespace trainyard::runner::augmentation_test
