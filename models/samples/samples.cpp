#include "models/samples/samples.h"

#include <cstddef>

namespace trainyard::models {

namespace {

Sequences selected(const Sequences& sequences, const std::vector<std::int64_t>& indices) {
  Sequences result;
  for (const std::int64_t index : indices) result.append(sequences[index]);
  return result;
}

}  // namespace

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
  const std::int64_t size = images.shape.pixels();
  Images result{.shape = images.shape, .pixels = {}, .labels = {}};
  result.pixels.reserve(indices.size() * static_cast<std::size_t>(size));
  result.labels.reserve(indices.size());
  for (const std::int64_t index : indices) {
    const auto start = images.pixels.begin() + index * size;
    result.pixels.insert(result.pixels.end(), start, start + size);
    result.labels.push_back(images.labels[static_cast<std::size_t>(index)]);
  }
  return result;
}

Texts selected(const Texts& texts, const std::vector<std::int64_t>& indices) {
  Texts result{.tokens = selected(texts.tokens, indices), .labels = {}};
  result.labels.reserve(indices.size());
  for (const std::int64_t index : indices)
    result.labels.push_back(texts.labels[static_cast<std::size_t>(index)]);
  return result;
}

TextPairs selected(const TextPairs& pairs, const std::vector<std::int64_t>& indices) {
  return {.source = selected(pairs.source, indices), .target = selected(pairs.target, indices)};
}

Samples selected(const Samples& samples, const std::vector<std::int64_t>& indices) {
  return std::visit([&](const auto& some) { return Samples(selected(some, indices)); }, samples);
}

}  // namespace trainyard::models
