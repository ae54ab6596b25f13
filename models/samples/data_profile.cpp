#include "models/samples/data_profile.h"

#include <algorithm>

namespace trainyard::models {

namespace {

std::vector<std::int64_t> count_labels(const std::vector<std::uint8_t>& labels) {
  std::vector<std::int64_t> counts;
  for (const std::uint8_t label : labels) {
    if (label >= counts.size()) counts.resize(label + 1U, 0);
    ++counts[label];
  }
  return counts;
}

std::vector<std::int64_t> classes_of(const Samples& samples) {
  if (const auto* images = std::get_if<Images>(&samples)) return count_labels(images->labels);
  if (const auto* texts = std::get_if<Texts>(&samples)) return count_labels(texts->labels);
  return {};
}

std::vector<ChannelCounts> channels_of(const Images& images) {
  std::vector<ChannelCounts> channels;
  const auto plane = static_cast<std::size_t>(images.shape.height * images.shape.width);
  const auto count = static_cast<std::size_t>(images.shape.channels);
  for (std::size_t channel = 0; channel < count; ++channel) {
    static constexpr std::array<const char*, 3> colours{"red", "green", "blue"};
    const std::string name = count == 1   ? "grey"
                             : count == 3 ? colours.at(channel)
                                          : "channel " + std::to_string(channel);
    channels.push_back({name, std::vector<std::int64_t>(brightness_bins, 0)});
  }
  for (std::size_t at = 0; at < images.pixels.size() && plane > 0; at += plane) {
    std::vector<std::int64_t>& counts = channels[at / plane % count].counts;
    const std::size_t end = std::min(at + plane, images.pixels.size());
    for (std::size_t i = at; i < end; ++i) ++counts[images.pixels[i] * brightness_bins / 256U];
  }
  return channels;
}

}  // namespace

DataProfile profile_of(const Splits& splits) {
  DataProfile profile{{classes_of(splits.train), classes_of(splits.validation), classes_of(splits.test)}, {}};
  std::size_t classes = 0;
  for (const auto& counts : profile.classes) classes = std::max(classes, counts.size());
  for (auto& counts : profile.classes) counts.resize(classes, 0);
  if (const auto* images = std::get_if<Images>(&splits.train)) profile.channels = channels_of(*images);
  return profile;
}

}  // namespace trainyard::models
