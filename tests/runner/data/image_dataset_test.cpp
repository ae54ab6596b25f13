#include "runner/data/image_dataset.h"

#include <cmath>

#include "tests/runner/support/doctest_beside_torch.h"

using namespace trainyard;
using namespace trainyard::runner;

TEST_CASE("images are standardised by mean and deviation of each channel, in either memory order") {
  // Channel 0: pixels 0, 2, 4, 6 (mean 3, variance 5). Channel 1: all 9 (deviation 0 is replaced by 1).
  const models::Images images{.shape = {2, 1, 2}, .pixels = {0, 2, 9, 9, 4, 6, 9, 9}, .labels = {3, 1}};
  const auto statistics = channel_statistics(images);
  CHECK(statistics[0].mean == 3);
  CHECK(statistics[0].deviation == doctest::Approx(std::sqrt(5.0)));
  CHECK(statistics[1].mean == 9);
  CHECK(statistics[1].deviation == 1);
  for (const bool channels_last : {false, true}) {
    CAPTURE(channels_last);
    const ImageDataset data(images, statistics, Target::label, at::kDouble, channels_last);
    const Batch batch = data.gather(at::tensor({1, 0, 1}, at::kLong));
    const double s = std::sqrt(5.0);
    const at::Tensor expected =
        at::tensor({1 / s, 3 / s, 0., 0., -3 / s, -1 / s, 0., 0., 1 / s, 3 / s, 0., 0.}, at::kDouble)
            .view({3, 2, 1, 2});
    CHECK(at::allclose(batch.inputs[0], expected));
    CHECK(at::equal(batch.targets, at::tensor({1, 3, 1}, at::kLong)));
    CHECK(batch.inputs[0].is_contiguous(channels_last ? at::MemoryFormat::ChannelsLast
                                                      : at::MemoryFormat::Contiguous));
  }
}

TEST_CASE("images that are their own target are scaled to [0, 1], and each value has weight 1") {
  const models::Images images{.shape = {2, 1, 2}, .pixels = {0, 51, 255, 9, 4, 6, 9, 9}, .labels = {3, 1}};
  const DataParts parts =
      make_parts({images, images, images}, find_task("reconstruction"), at::kDouble, false);
  const at::Tensor indices = at::tensor({0, 0}, at::kLong);
  const Batch batch = parts.train->gather(indices);
  CHECK(at::allclose(batch.inputs[0][1].flatten(), at::tensor({0., 0.2, 1., 9 / 255.}, at::kDouble)));
  CHECK(at::equal(batch.targets, batch.inputs[0]));
  CHECK(batch.targets.is_same(batch.inputs[0]));  // gathered once
  CHECK(parts.train->shape(indices) == std::vector<std::int64_t>{2});
  CHECK(parts.train->weight(indices) == 8);
}

TEST_CASE("validation and test images are standardised with the statistics of the training part") {
  const models::Images train{.shape = {1, 1, 2}, .pixels = {0, 2, 4, 6}, .labels = {0, 0}};
  const models::Images test{.shape = {1, 1, 2}, .pixels = {3, 8}, .labels = {0}};
  const DataParts parts = make_parts({train, test, test}, find_task("classification"), at::kDouble, false);
  const at::Tensor pixels = parts.test->inputs(at::zeros({1}, at::kLong))[0].flatten();
  CHECK(at::allclose(pixels, at::tensor({0., 5 / std::sqrt(5.)}, at::kDouble)));
  CHECK(parts.test->weight(at::zeros({1}, at::kLong)) == 1);
}

TEST_CASE("mapped images give the same batches as images in memory") {
  const models::Images own{.shape = {3, 2, 2},
                           .pixels =
                               [] {
                                 std::vector<std::uint8_t> pixels(static_cast<std::size_t>(5 * 12));
                                 for (std::size_t i = 0; i < pixels.size(); ++i)
                                   pixels[i] = static_cast<std::uint8_t>(i * 37 % 256);
                                 return pixels;
                               }(),
                           .labels = {0, 1, 2, 1, 0}};
  models::Images mapped{.shape = own.shape, .pixels = {}, .labels = own.labels};
  mapped.mapped = {std::shared_ptr<const std::uint8_t>(), own.pixels.data()};  // nobody owns it
  mapped.places = {0, 1, 2, 3, 4};
  const auto statistics = channel_statistics(own);
  CHECK(channel_statistics(mapped)[2].mean == statistics[2].mean);
  const at::Tensor indices = at::tensor({4, 0, 3}, at::kLong);
  for (const bool channels_last : {false, true})
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      CAPTURE(channels_last);
      const ImageDataset expected(own, statistics, Target::label, dtype, channels_last);
      const ImageDataset found(mapped, statistics, Target::label, dtype, channels_last);
      CHECK(at::equal(found.gather(indices).inputs[0], expected.gather(indices).inputs[0]));
      CHECK(found.inputs(indices)[0].strides() == expected.inputs(indices)[0].strides());
      CHECK(found.nbytes() == expected.nbytes());
      const Augmentation& crops = find_augmentation("flip-crop");
      CHECK(at::equal(found.augmented(crops, 1, 2)->inputs(indices)[0],
                      expected.augmented(crops, 1, 2)->inputs(indices)[0]));
    }
}
