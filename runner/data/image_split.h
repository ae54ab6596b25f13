// Images as tensors: pixels standardised by mean and standard deviation of each channel of the training part,
// or scaled to [0, 1] where the image itself is the target.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/data/augmentation.h"
#include "runner/data/split_data.h"

namespace trainyard::runner {

// Of one channel, in units of pixel values 0 – 255: a pixel becomes (value − mean) / deviation.
struct ChannelStatistics {
  double mean = 0;
  double deviation = 1;  // of the population; 1 where all pixels are equal
};
std::vector<ChannelStatistics> channel_statistics(const models::Images& images);
std::vector<ChannelStatistics> unit_scale(std::int64_t channels);  // 0 – 255 to [0, 1]

class ImageSplit final : public SplitData {
 public:
  ImageSplit(const models::Images& images, const std::vector<ChannelStatistics>& statistics, Target target,
             at::ScalarType dtype, bool channels_last);
  std::int64_t size() const override;
  networks::Activations inputs(const at::Tensor& places) const override;  // {[batch, channel, height, width]}
  at::Tensor targets(const at::Tensor& places) const override;  // labels int64 [batch], or the images
  Batch gather(const at::Tensor& places) const override;
  std::int64_t weight(const at::Tensor& places) const override;  // samples, or pixels of all channels
  std::unique_ptr<SplitData> augmented(std::string_view kind, std::uint64_t seed,
                                       std::int64_t epoch) const override;
  void serve(at::Device device, bool resident) override;
  bool host_gathers() const override { return pixels_.device() != device_; }
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
