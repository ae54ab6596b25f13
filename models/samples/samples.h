// Samples as plain arrays, texts before they are tokens, and what a data set looks like.
//
// What a part of a data set is once it is read: plain arrays, one alternative a kind of data. No LibTorch:
// `runner` turns them into tensors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace trainyard::models {

struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t pixels() const { return channels * height * width; }
  bool operator==(const ImageShape&) const = default;
};

// What a model is built for. A member is 0 where the data has no such thing, or where only the data tells.
struct InputShape {
  ImageShape image;                                   // {0, 0, 0} for texts
  std::int64_t classes = 0;                           // of labelled samples
  std::int64_t vocabulary = 0;                        // tokens of a text, or of the source of a pair
  std::int64_t target_vocabulary = 0;                 // tokens of the target of a pair
  std::int64_t source_length = 0, target_length = 0;  // typical tokens a sample, for counted cost only
  bool operator==(const InputShape&) const = default;
};

// Labelled images as the files hold them.
struct Images {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  // [sample, channel, height, width], 0 – 255
  std::vector<std::uint8_t> labels;  // [sample], 0 … classes − 1
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

// Sequences of tokens of different lengths, one behind the other; each has at least one token.
struct Sequences {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> offsets{0};  // [sequence + 1]: sequence i is tokens[offsets[i], offsets[i + 1])
  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::span<const std::int32_t> operator[](std::int64_t index) const;
  void append(std::span<const std::int32_t> sequence);
};

// Labelled texts.
struct Texts {
  Sequences tokens;                  // no <bos>, no <eos>
  std::vector<std::uint8_t> labels;  // [sample], 0 … classes − 1
  std::int64_t size() const { return tokens.size(); }
};

// Texts and their translations.
struct TextPairs {
  Sequences source;  // … <eos>
  Sequences target;  // <bos> … <eos>
  std::int64_t size() const { return source.size(); }
};

enum class DataKind { images, texts, text_pairs };

using Samples = std::variant<Images, Texts, TextPairs>;  // in the order of DataKind
std::int64_t sample_count(const Samples& samples);

// The samples at `indices`, in that order.
Images selected(const Images& images, const std::vector<std::int64_t>& indices);
Texts selected(const Texts& texts, const std::vector<std::int64_t>& indices);
TextPairs selected(const TextPairs& pairs, const std::vector<std::int64_t>& indices);
Samples selected(const Samples& samples, const std::vector<std::int64_t>& indices);

// All of one kind.
struct Splits {
  Samples train;
  Samples validation;
  Samples test;
};

// Texts as their source has them, checked to be UTF-8, before they are tokens.

struct RawTexts {
  std::vector<std::string> source;   // [sample]
  std::vector<std::string> target;   // [sample], of translations
  std::vector<std::uint8_t> labels;  // [sample], of classification
  std::int64_t size() const { return static_cast<std::int64_t>(source.size()); }
};

RawTexts selected(const RawTexts& texts, const std::vector<std::int64_t>& indices);

// What a data set looks like: samples by class, and how often each brightness occurs in each colour channel.
// For the pictures of a report; computed once a data set, from the arrays that a run reads.

struct ChannelCounts {
  std::string name;                  // "red", "green", "blue"; "grey" of one channel
  std::vector<std::int64_t> counts;  // [64]: pixels of value 4i … 4i + 3
};
inline constexpr int brightness_bins = 64;

struct DataProfile {
  std::array<std::vector<std::int64_t>, 3>
      classes;                          // samples by class of train, validation, test; empty: no classes
  std::vector<ChannelCounts> channels;  // of the training part; empty: no images
};

DataProfile profile_of(const Splits& splits);

}  // namespace trainyard::models
