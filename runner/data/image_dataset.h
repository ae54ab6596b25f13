// Images as tensors: pixels standardised by mean and standard deviation of each channel of the training part,
// or scaled to [0, 1] where the image itself is the target.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/data/dataset.h"

namespace trainyard::runner {

// Augmentation of images by horizontal flips and random crops, on whole batches. What happens to a sample is
// a pure function of (seed, epoch, number of the sample), however the samples are divided into batches.

inline constexpr std::int64_t crop_padding = 4;  // pixels on each side, as He et al. 2016, section 4.2

// What is drawn for each sample of a data set, [sample]; undefined where it is not wanted.
struct AugmentationDraws {
  bool any() const { return flipped.defined() || left.defined(); }
  AugmentationDraws to(at::Device device) const;
  at::Tensor flipped;    // bool, equally likely: left and right change places
  at::Tensor left, top;  // int64, pixels, 0 … 2 · crop_padding: where the crop begins in the padded image
};

// `kind` is "flip", "crop", "flip-crop" or "none" (nothing drawn); flips are the same with and without crops,
// and so are crops (stream "augmentation/seed/epoch", a number a sample). UserError for another kind, with
// those that exist.
AugmentationDraws draw_augmentation(std::string_view kind, std::int64_t samples, std::uint64_t seed,
                                    std::int64_t epoch);

// `images` [batch, channel, height, width] of any type, of the samples `places` int64 [batch], cropped and
// then flipped as drawn; `fill` [channel], of the same type, is the pixel that a crop pads with. The memory
// order of the images is kept.
at::Tensor augment(const at::Tensor& images, const at::Tensor& places, const AugmentationDraws& draws,
                   const at::Tensor& fill);

// The same by operations on whole tensors, all on one device: how it is done off the CPU.
at::Tensor augment_by_tensors(const at::Tensor& images, const at::Tensor& places,
                              const AugmentationDraws& draws, const at::Tensor& fill);

// Of one channel, in units of pixel values 0 – 255: a pixel becomes (value − mean) / deviation.
struct ChannelStatistics {
  double mean = 0;
  double deviation = 1;  // of the population; 1 where all pixels are equal
};
std::vector<ChannelStatistics> channel_statistics(const models::Images& images);
std::vector<ChannelStatistics> unit_scale(std::int64_t channels);  // 0 – 255 to [0, 1]

class ImageDataset final : public Dataset {
 public:
  ImageDataset(const models::Images& images, const std::vector<ChannelStatistics>& statistics, Target target,
               at::ScalarType dtype, bool channels_last);
  std::int64_t size() const override;
  networks::Activations inputs(const at::Tensor& places) const override;  // {[batch, channel, height, width]}
  at::Tensor targets(const at::Tensor& places) const override;  // labels int64 [batch], or the images
  Batch gather(const at::Tensor& places) const override;
  std::int64_t weight(const at::Tensor& places) const override;  // samples, or pixels of all channels
  std::unique_ptr<Dataset> augmented(std::string_view kind, std::uint64_t seed,
                                     std::int64_t epoch) const override;
  void serve(at::Device device, bool resident) override;
  bool gathers_on_host() const override { return pixels_.device() != device_; }
  std::int64_t nbytes() const override { return static_cast<std::int64_t>(pixels_.nbytes()); }

 private:
  at::Tensor images_at(const at::Tensor& places) const;
  at::Tensor labels_at(const at::Tensor& places) const;

  at::Tensor pixels_;        // [sample, pixel], in the order of `channels_last_`
  at::Tensor labels_;        // int64 [sample]
  at::Tensor black_;         // [channel]: what a pixel of value 0 became
  AugmentationDraws draws_;  // on `device_`, as are black_ and labels_
  at::Device device_ = at::kCPU;
  models::ImageShape shape_;
  Target target_;
  bool channels_last_;  // [height, width, channel] in memory
};

}  // namespace trainyard::runner
