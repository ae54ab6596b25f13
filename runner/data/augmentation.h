// Augmentation of images by horizontal flips and random crops, on whole batches. What happens to a sample is
// a pure function of (seed, epoch, number of the sample), however the samples are divided into batches.
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace trainyard::runner {

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

}  // namespace trainyard::runner
