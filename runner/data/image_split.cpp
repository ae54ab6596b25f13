#include "runner/data/image_split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include "runner/device/device.h"

namespace trainyard::runner {

namespace {

constexpr std::size_t levels = 256;

// Writes image after image, in the order of the channels that is wanted, through a table of standardised
// values.
template <class Number>
void standardise(const models::Images& images, const std::vector<ChannelStatistics>& statistics,
                 bool channels_last, Number* out) {
  const std::int64_t channels = images.shape.channels;
  const std::int64_t area = images.shape.height * images.shape.width;
  std::vector<std::array<Number, levels>> tables(statistics.size());
  for (std::size_t c = 0; c < tables.size(); ++c) {
    for (std::size_t v = 0; v < levels; ++v) {
      tables[c][v] =
          static_cast<Number>((static_cast<double>(v) - statistics[c].mean) / statistics[c].deviation);
    }
  }
  const std::int64_t channel_step = channels_last ? 1 : area;
  const std::int64_t pixel_step = channels_last ? channels : 1;
  const std::uint8_t* in = images.pixels.data();
  for (std::int64_t sample = 0; sample < images.size(); ++sample, out += channels * area) {
    for (std::int64_t c = 0; c < channels; ++c, in += area) {
      const auto& table = tables[static_cast<std::size_t>(c)];
      for (std::int64_t p = 0; p < area; ++p) out[c * channel_step + p * pixel_step] = table[in[p]];
    }
  }
}

at::Tensor black_of(const std::vector<ChannelStatistics>& statistics, at::ScalarType dtype) {
  std::vector<double> values;
  values.reserve(statistics.size());
  for (const ChannelStatistics& channel : statistics) values.push_back(-channel.mean / channel.deviation);
  return at::tensor(values, dtype);
}

}  // namespace

ImageSplit::ImageSplit(const models::Images& images, const std::vector<ChannelStatistics>& statistics,
                       Target target, at::ScalarType dtype, bool channels_last)
    : pixels_(at::empty({images.size(), images.shape.pixels()}, dtype)),
      labels_(at::empty({images.size()}, at::kLong)),
      black_(black_of(statistics, dtype)),
      shape_(images.shape),
      target_(target),
      channels_last_(channels_last) {
  AT_DISPATCH_FLOATING_TYPES(dtype, "standardise", [&] {
    standardise(images, statistics, channels_last, pixels_.data_ptr<scalar_t>());
  });
  std::copy(images.labels.begin(), images.labels.end(), labels_.data_ptr<std::int64_t>());
}

std::int64_t ImageSplit::size() const {
  return labels_.size(0);
}

networks::Activations ImageSplit::inputs(const at::Tensor& places) const {
  return {images_at(places)};
}

at::Tensor ImageSplit::targets(const at::Tensor& places) const {
  return target_ == Target::input ? images_at(places) : labels_at(places);
}

Batch ImageSplit::gather(const at::Tensor& places) const {
  const at::Tensor images = images_at(places);
  return {{images}, target_ == Target::input ? images : labels_at(places), places};
}

std::int64_t ImageSplit::weight(const at::Tensor& places) const {
  return places.size(0) * (target_ == Target::input ? shape_.pixels() : 1);
}

std::unique_ptr<SplitData> ImageSplit::augmented(std::string_view kind, std::uint64_t seed,
                                                 std::int64_t epoch) const {
  auto changed = std::make_unique<ImageSplit>(*this);
  changed->draws_ = draw_augmentation(kind, size(), seed, epoch).to(device_);
  return changed;
}

void ImageSplit::serve(at::Device device, bool resident) {
  device_ = device;
  labels_ = labels_.to(device);
  black_ = black_.to(device);
  pixels_ = resident ? pixels_.to(device) : pixels_.pin_memory();
}

at::Tensor ImageSplit::labels_at(const at::Tensor& places) const {
  return labels_.index_select(0, places.to(device_, /*non_blocking=*/true));
}

at::Tensor ImageSplit::images_at(const at::Tensor& places) const {
  const at::Tensor own = places.to(device_, /*non_blocking=*/true);
  at::Tensor images =
      pixels_.device() == device_ ? pixels_.index_select(0, own) : fetched(pixels_, places, device_);
  if (channels_last_)
    images = images.view({-1, shape_.height, shape_.width, shape_.channels}).permute({0, 3, 1, 2});
  else
    images = images.view({-1, shape_.channels, shape_.height, shape_.width});
  return augment(images, own, draws_, black_);
}

std::vector<ChannelStatistics> channel_statistics(const models::Images& images) {
  const std::int64_t area = images.shape.height * images.shape.width;
  std::vector<std::array<std::int64_t, levels>> counts(static_cast<std::size_t>(images.shape.channels));
  const std::uint8_t* in = images.pixels.data();
  for (std::int64_t sample = 0; sample < images.size(); ++sample) {
    for (auto& count : counts) {
      for (std::int64_t p = 0; p < area; ++p) ++count[*in++];
    }
  }
  std::vector<ChannelStatistics> statistics;
  for (const auto& count : counts) {
    double number = 0, sum = 0, squares = 0;  // of integers: exact in double up to 2^53
    for (std::size_t v = 0; v < levels; ++v) {
      const auto n = static_cast<double>(count[v]);
      const auto value = static_cast<double>(v);
      number += n;
      sum += n * value;
      squares += n * value * value;
    }
    const double mean = number > 0 ? sum / number : 0;
    const double variance = number > 0 ? squares / number - mean * mean : 0;
    statistics.push_back({mean, variance > 0 ? std::sqrt(variance) : 1});
  }
  return statistics;
}

std::vector<ChannelStatistics> unit_scale(std::int64_t channels) {
  return {static_cast<std::size_t>(channels), ChannelStatistics{0, levels - 1}};
}

}  // namespace trainyard::runner
