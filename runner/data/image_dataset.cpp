#include "runner/data/image_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "base/named_row.h"
#include "models/networks/random_stream.h"
#include "runner/device/device.h"

namespace trainyard::runner {

namespace {

constexpr std::size_t levels = 256;

// Standardised values of all levels of a pixel, [channel, 256].
at::Tensor values_of(const std::vector<ChannelStatistics>& statistics, at::ScalarType dtype) {
  std::vector<double> values;
  values.reserve(statistics.size() * levels);
  for (const ChannelStatistics& channel : statistics)
    for (std::size_t v = 0; v < levels; ++v)
      values.push_back((static_cast<double>(v) - channel.mean) / channel.deviation);
  return at::tensor(values, at::kDouble).to(dtype).view({-1, static_cast<std::int64_t>(levels)});
}

// The images at `indices` through the table `values`, in the memory format that `channels_last` selects.
template <class Number>
void standardise(const models::Images& images, const at::Tensor& indices, const at::Tensor& values,
                 bool channels_last, at::Tensor& into) {
  const std::int64_t channels = images.shape.channels;
  const std::int64_t area = images.shape.height * images.shape.width;
  const std::int64_t channel_step = channels_last ? 1 : area;
  const std::int64_t pixel_step = channels_last ? channels : 1;
  const auto* samples = indices.const_data_ptr<std::int64_t>();
  const auto* tables = values.const_data_ptr<Number>();
  auto* all = into.data_ptr<Number>();
  const std::int64_t grain = std::max<std::int64_t>(1, at::internal::GRAIN_SIZE / (channels * area));
  at::parallel_for(0, indices.size(0), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint8_t* in = images.image(samples[i]).data();
      for (std::int64_t c = 0; c < channels; ++c, in += area) {
        const Number* table = tables + c * static_cast<std::int64_t>(levels);
        Number* out = all + i * channels * area + c * channel_step;
        for (std::int64_t p = 0; p < area; ++p) out[p * pixel_step] = table[in[p]];
      }
    }
  });
}

at::Tensor standardised(const models::Images& images, const at::Tensor& indices, const at::Tensor& values,
                        bool channels_last) {
  at::Tensor pixels = at::empty({indices.size(0), images.shape.pixels()}, values.options());
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "standardise",
                             [&] { standardise<scalar_t>(images, indices, values, channels_last, pixels); });
  return pixels;
}

constexpr std::array augmentations{Augmentation{"none", false, false}, Augmentation{"flip", true, false},
                                   Augmentation{"crop", false, true}, Augmentation{"flip-crop", true, true}};

}  // namespace

ImageDataset::ImageDataset(const models::Images& images, const std::vector<ChannelStatistics>& statistics,
                           Target target, at::ScalarType dtype, bool channels_last)
    : values_(values_of(statistics, dtype)),
      labels_(at::empty({images.size()}, at::kLong)),
      black_(values_.select(1, 0).clone()),
      shape_(images.shape),
      target_(target),
      channels_last_(channels_last) {
  if (images.mapped)
    mapped_ = std::make_shared<models::Images>(images);
  else
    pixels_ = standardised(images, at::arange(images.size(), at::kLong), values_, channels_last_);
  std::copy(images.labels.begin(), images.labels.end(), labels_.data_ptr<std::int64_t>());
}

at::Tensor ImageDataset::targets(const at::Tensor& indices) const {
  return target_ == Target::input ? images_at(indices) : labels_at(indices);
}

Batch ImageDataset::gather(const at::Tensor& indices) const {
  const at::Tensor images = images_at(indices);
  return {{images}, target_ == Target::input ? images : labels_at(indices), indices};
}

std::unique_ptr<Dataset> ImageDataset::augmented(const Augmentation& augmentation, std::uint64_t seed,
                                                 std::int64_t epoch) const {
  auto changed = std::make_unique<ImageDataset>(*this);
  changed->draws_ = draw_augmentation(augmentation, size(), seed, epoch).to(device_);
  return changed;
}

void ImageDataset::serve(at::Device device, bool resident) {
  device_ = device;
  if (!pixels_.defined())
    pixels_ = standardised(*mapped_, at::arange(size(), at::kLong), values_, channels_last_);
  labels_ = labels_.to(device);
  black_ = black_.to(device);
  pixels_ = resident ? pixels_.to(device) : pixels_.pin_memory();
}

at::Tensor ImageDataset::labels_at(const at::Tensor& indices) const {
  return labels_.index_select(0, indices.to(device_, /*non_blocking=*/true));
}

at::Tensor ImageDataset::images_at(const at::Tensor& indices) const {
  const at::Tensor own = indices.to(device_, /*non_blocking=*/true);
  at::Tensor images = !pixels_.defined()
                          ? standardised(*mapped_, indices.contiguous(), values_, channels_last_)
                      : gathers_on_host() ? fetched(pixels_, indices, device_)
                                          : pixels_.index_select(0, own);
  if (channels_last_)
    images = images.view({-1, shape_.height, shape_.width, shape_.channels}).permute({0, 3, 1, 2});
  else
    images = images.view({-1, shape_.channels, shape_.height, shape_.width});
  return augment(images, own, draws_, black_);
}

std::vector<ChannelStatistics> channel_statistics(const models::Images& images) {
  const std::int64_t area = images.shape.height * images.shape.width;
  std::vector<std::array<std::int64_t, levels>> counts(static_cast<std::size_t>(images.shape.channels));
  for (std::int64_t sample = 0; sample < images.size(); ++sample) {
    const std::uint8_t* in = images.image(sample).data();
    for (auto& count : counts) {
      for (std::int64_t p = 0; p < area; ++p) ++count[*in++];
    }
  }
  std::vector<ChannelStatistics> statistics;
  for (const auto& count : counts) {
    double number = 0, sum = 0, squares = 0;  // sums of integers, exact in double up to 2^53
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

const Augmentation& find_augmentation(std::string_view name) {
  return named_row(augmentations, &Augmentation::name, "augmentation", name);
}

AugmentationDraws draw_augmentation(const Augmentation& augmentation, std::int64_t samples,
                                    std::uint64_t seed, std::int64_t epoch) {
  constexpr std::int64_t positions = 2 * crop_padding + 1;
  const at::Tensor drawn =
      at::randint(2 * positions * positions, {samples},
                  networks::random_stream("augmentation", seed, std::to_string(epoch)), at::kLong);
  AugmentationDraws draws;
  if (augmentation.flips) draws.flipped = drawn.remainder(2).to(at::kBool);
  if (augmentation.crops) {
    const at::Tensor corner = drawn.floor_divide(2);
    draws.left = corner.remainder(positions);
    draws.top = corner.floor_divide(positions);
  }
  return draws;
}

AugmentationDraws AugmentationDraws::to(at::Device device) const {
  const auto moved = [&](const at::Tensor& drawn) { return drawn.defined() ? drawn.to(device) : drawn; };
  return {moved(flipped), moved(left), moved(top)};
}

at::Tensor augment(const at::Tensor& images, const at::Tensor& indices, const AugmentationDraws& draws,
                   const at::Tensor& fill) {
  if (!draws.any()) return images;
  const std::int64_t batch = images.size(0), lines = images.size(2), columns = images.size(3);
  const auto of_batch = [&](const at::Tensor& drawn) { return drawn.index_select(0, indices).unsqueeze(1); };
  const auto shifted = [&](const at::Tensor& along,
                           const at::Tensor& corner) {  // [batch, lines] or [batch, columns]
    return corner.defined() ? along.add(of_batch(corner)).sub_(crop_padding) : along.expand({batch, -1});
  };
  at::Tensor across = at::arange(columns, indices.options()).unsqueeze(0);
  if (draws.flipped.defined()) across = at::where(of_batch(draws.flipped), columns - 1 - across, across);
  const at::Tensor x = shifted(across, draws.left);
  const at::Tensor y = shifted(at::arange(lines, indices.options()).unsqueeze(0), draws.top);
  const auto inside = [](const at::Tensor& at, std::int64_t end) {
    return at.ge(0).logical_and_(at.lt(end));
  };
  const at::Tensor known = inside(y, lines).unsqueeze(2).logical_and(inside(x, columns).unsqueeze(1));
  const at::Tensor image = at::arange(batch, indices.options()).view({-1, 1, 1});
  const at::Tensor pixels = images.permute({0, 2, 3, 1})
                                .index({image, y.clamp(0, lines - 1).unsqueeze(2),
                                        x.clamp(0, columns - 1).unsqueeze(1)});  // [batch, y, x, channel]
  return at::where(known.unsqueeze(3), pixels, fill)
      .permute({0, 3, 1, 2})
      .contiguous(images.suggest_memory_format());
}

}  // namespace trainyard::runner
