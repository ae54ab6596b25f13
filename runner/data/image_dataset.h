// Images as tensors, and their augmentation. Pixels are standardised by mean and standard deviation per
// channel of the training split. If the image itself is the target, they are scaled to [0, 1].
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/data/dataset.h"

namespace trainyard::runner {

// Augmentation of images by horizontal flips and random crops, on whole batches. The change of a sample is a
// pure function of (seed, epoch, sample index). It does not depend on the division into batches.

inline constexpr std::int64_t crop_padding = 4;  // pixels on each side (He et al. 2016, section 4.2)

// Random choices for each sample of a data set, [sample]. Undefined if they are not used.
struct AugmentationDraws {
  bool any() const { return flipped.defined() || left.defined(); }
  AugmentationDraws to(at::Device device) const;
  at::Tensor flipped;    // bool, probability 1/2: exchange left and right
  at::Tensor left, top;  // int64, pixels, 0 … 2 · crop_padding: corner of the crop in the padded image
};

// Flips are the same with and without crops, and
// crops are the same with and without flips. Random stream "augmentation/seed/epoch", one number per sample.
AugmentationDraws draw_augmentation(const Augmentation& augmentation, std::int64_t samples,
                                    std::uint64_t seed, std::int64_t epoch);

// Crops, then flips.
// - `images`: [batch, channel, height, width] of any type. Their memory format is kept.
// - `indices`: sample indices, int64 [batch].
// - `fill`: pixel for the padding of a crop, [channel], of the same type.
at::Tensor augment(const at::Tensor& images, const at::Tensor& indices, const AugmentationDraws& draws,
                   const at::Tensor& fill);

// Statistics of one channel, for pixel values 0 – 255. A pixel becomes (value − mean) / deviation.
struct ChannelStatistics {
  double mean = 0;
  double deviation = 1;  // of the population; 1 if all pixels are equal
};
std::vector<ChannelStatistics> channel_statistics(const models::Images& images);
std::vector<ChannelStatistics> unit_scale(std::int64_t channels);  // 0 – 255 to [0, 1]

class ImageDataset final : public Dataset {
 public:
  ImageDataset(const models::Images& images, const std::vector<ChannelStatistics>& statistics, Target target,
               at::ScalarType dtype, bool channels_last);
  std::int64_t size() const override { return labels_.size(0); }
  // {[batch, channel, height, width]}
  networks::Activations inputs(const at::Tensor& indices) const override { return {images_at(indices)}; }
  at::Tensor targets(const at::Tensor& indices) const override;  // labels int64 [batch], or the images
  Batch gather(const at::Tensor& indices) const override;
  std::int64_t weight_of(const at::Tensor& indices) const override {  // samples, or pixels of all channels
    return indices.size(0) * (target_ == Target::input ? shape_.pixels() : 1);
  }
  std::unique_ptr<Dataset> augmented(const Augmentation& augmentation, std::uint64_t seed,
                                     std::int64_t epoch) const override;
  void serve(at::Device device, bool resident) override;
  bool gathers_on_host() const override { return pixels_.defined() && pixels_.device() != device_; }
  std::int64_t nbytes() const override { return size() * shape_.pixels() * black_.element_size(); }

 private:
  at::Tensor images_at(const at::Tensor& indices) const;
  at::Tensor labels_at(const at::Tensor& indices) const;

  at::Tensor pixels_;  // [sample, pixel], in the order of `channels_last_`; undefined if they are mapped
  std::shared_ptr<const models::Images> mapped_;  // else null. Each batch is standardised when it is gathered
  at::Tensor values_;        // [channel, 256]: standardised values of the levels of a pixel
  at::Tensor labels_;        // int64 [sample]
  at::Tensor black_;         // [channel]: standardised value of a pixel of value 0
  AugmentationDraws draws_;  // on `device_`, as are black_ and labels_
  at::Device device_ = at::kCPU;
  models::ImageShape shape_;
  Target target_;
  bool channels_last_;  // [height, width, channel] in memory
};

}  // namespace trainyard::runner
