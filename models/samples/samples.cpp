#include "models/samples/samples.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace trainyard::models {

namespace {

Sequences selected(const Sequences& sequences, const std::vector<std::int64_t>& indices) {
  Sequences result;
  for (const std::int64_t index : indices) result.append(sequences[index]);
  return result;
}

template <typename T>
std::vector<T> picked(const std::vector<T>& all, const std::vector<std::int64_t>& indices) {
  std::vector<T> some;
  if (all.empty()) return some;
  some.reserve(indices.size());
  for (const std::int64_t index : indices) some.push_back(all[static_cast<std::size_t>(index)]);
  return some;
}

std::vector<std::int64_t> count_labels(const std::vector<std::int32_t>& labels) {
  std::vector<std::int64_t> counts;
  for (const std::int32_t label : labels) {
    const auto at = static_cast<std::size_t>(label);
    if (at >= counts.size()) counts.resize(at + 1, 0);
    ++counts[at];
  }
  return counts;
}

std::vector<std::int64_t> classes_of(const Samples& samples) {
  if (const auto* images = std::get_if<Images>(&samples)) return count_labels(images->labels);
  if (const auto* texts = std::get_if<Texts>(&samples)) return count_labels(texts->labels);
  if (const auto* rows = std::get_if<Rows>(&samples)) return count_labels(rows->labels);
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
                                          : fmt::format("channel {}", channel);
    channels.push_back({name, std::vector<std::int64_t>(brightness_bins, 0)});
  }
  for (std::int64_t sample = 0; sample < images.size(); ++sample) {
    const std::span<const std::uint8_t> image = images.image(sample);
    for (std::size_t channel = 0; channel < count; ++channel)
      for (const std::uint8_t value : image.subspan(channel * plane, plane))
        ++channels[channel].counts[value * brightness_bins / 256U];
  }
  return channels;
}

}  // namespace

std::span<const std::uint8_t> Images::image(std::int64_t sample) const {
  const auto size = static_cast<std::size_t>(shape.pixels());
  const auto at = static_cast<std::size_t>(sample);
  return {(mapped ? mapped.get() + static_cast<std::size_t>(places[at]) * size : pixels.data() + at * size),
          size};
}

std::span<const std::int32_t> Sequences::operator[](std::int64_t index) const {
  const auto at = static_cast<std::size_t>(index);
  const auto first = static_cast<std::size_t>(offsets[at]);
  return std::span(tokens).subspan(first, static_cast<std::size_t>(offsets[at + 1]) - first);
}

void Sequences::append(std::span<const std::int32_t> sequence) {
  tokens.insert(tokens.end(), sequence.begin(), sequence.end());
  offsets.push_back(static_cast<std::int64_t>(tokens.size()));
}

std::int64_t sample_count(const Samples& samples) {
  return std::visit([](const auto& some) { return some.size(); }, samples);
}

Images selected(const Images& images, const std::vector<std::int64_t>& indices) {
  Images result{.shape = images.shape,
                .pixels = {},
                .labels = picked(images.labels, indices),
                .mapped = images.mapped,
                .places = picked(images.places, indices)};
  if (images.mapped) return result;
  result.pixels.reserve(indices.size() * static_cast<std::size_t>(images.shape.pixels()));
  for (const std::int64_t index : indices) {
    const std::span<const std::uint8_t> image = images.image(index);
    result.pixels.insert(result.pixels.end(), image.begin(), image.end());
  }
  return result;
}

Windows selected(const Windows& windows, const std::vector<std::int64_t>& indices) {
  return {.tokens = selected(windows.tokens, indices)};
}

RawTexts selected(const RawTexts& texts, const std::vector<std::int64_t>& indices) {
  return {.source = picked(texts.source, indices),
          .target = picked(texts.target, indices),
          .labels = picked(texts.labels, indices)};
}

DataProfile profile_of(const Splits& splits) {
  DataProfile profile{{classes_of(splits.train), classes_of(splits.validation), classes_of(splits.test)}, {}};
  std::size_t classes = 0;
  for (const auto& counts : profile.classes) classes = std::max(classes, counts.size());
  for (auto& counts : profile.classes) counts.resize(classes, 0);
  if (const auto* images = std::get_if<Images>(&splits.train)) profile.channels = channels_of(*images);
  return profile;
}

}  // namespace trainyard::models
