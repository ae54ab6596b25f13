// Samples of a data set as plain arrays, and their statistics for the report.
// There is one type per kind of data. `runner` converts the arrays to tensors. This file needs no LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <memory>
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

// The input that a model is built for. A member is 0 if it does not apply, or is not known before data is
// read.
struct InputShape {
  ImageShape image;                    // {0, 0, 0} for texts, {columns, 1, 1} for rows
  std::int64_t classes = 0;            // 0 if samples have no labels; 1 if rows have a number
  std::int64_t vocabulary = 0;         // number of tokens of texts, or of the source of pairs
  std::int64_t target_vocabulary = 0;  // number of tokens of the target of pairs
  // Typical tokens per sample, for cost estimates only. For windows of a text: tokens that the network reads.
  std::int64_t source_length = 0, target_length = 0;
  bool operator==(const InputShape&) const = default;
};

// Labelled images, with the pixels of the files.
struct Images {
  ImageShape shape;
  std::vector<std::uint8_t> pixels;  // [sample, channel, height, width], 0 – 255; empty if they are mapped
  std::vector<std::int32_t> labels;  // [sample], 0 … classes − 1
  // The pixels in a mapped file: [image, channel, height, width]. All processes of a host share this memory.
  std::shared_ptr<const std::uint8_t> mapped = {};
  std::vector<std::int64_t> places = {};  // [sample]: number of its image in the mapped file
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::span<const std::uint8_t> image(std::int64_t sample) const;  // [channel, height, width]
};

// Token sequences of different lengths, concatenated. Each has at least one token.
struct Sequences {
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> offsets{0};  // [sequence + 1]: sequence i is tokens[offsets[i], offsets[i + 1])
  std::int64_t size() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::span<const std::int32_t> operator[](std::int64_t index) const;
  void append(std::span<const std::int32_t> sequence);
};

// Labelled texts.
struct Texts {
  Sequences tokens;                  // without <bos> and <eos>
  std::vector<std::int32_t> labels;  // [sample], 0 … classes − 1
  std::int64_t size() const { return tokens.size(); }
};

// Texts and their translations.
struct TextPairs {
  Sequences source;  // each ends with <eos>
  Sequences target;  // each begins with <bos> and ends with <eos>
  std::int64_t size() const { return source.size(); }
};

// Windows of a text, all of one length. The tokens 1 … n of a window follow its tokens 0 … n − 1.
struct Windows {
  Sequences tokens;  // n + 1 each
  std::int64_t size() const { return tokens.size(); }
};

// Rows of a table. All numbers are standardised by the training part.
struct Rows {
  std::int64_t columns = 0;
  std::vector<float> values;         // [sample, column]
  std::vector<std::int32_t> labels;  // [sample], 0 … classes − 1; none if targets are numbers
  std::vector<float> numbers;        // [sample]: targets; none if targets are classes
  double deviation = 0;              // by which the targets were divided
  std::int64_t size() const { return std::ssize(labels) + std::ssize(numbers); }
};

enum class DataKind { images, texts, text_pairs, windows, rows };

using Samples = std::variant<Images, Texts, TextPairs, Windows, Rows>;  // in the order of DataKind
std::int64_t sample_count(const Samples& samples);

// The samples at `indices`, in that order.
Images selected(const Images& images, const std::vector<std::int64_t>& indices);
Windows selected(const Windows& windows, const std::vector<std::int64_t>& indices);

// The parts of a data set, or of a run. A part that a data set does not have is empty.
template <typename T>
struct Parts {
  T train = {};
  T validation = {};
  T test = {};

  std::array<T*, 3> all() { return {&train, &validation, &test}; }
  std::array<const T*, 3> all() const { return {&train, &validation, &test}; }
  // What `made` returns for each part, in this order.
  template <typename Make>
  auto each(const Make& made) {
    return Parts<decltype(made(train))>{made(train), made(validation), made(test)};
  }
};

using Splits = Parts<Samples>;  // of a run; all have the same alternative

// Texts before they are split into tokens. All are UTF-8.
struct RawTexts {
  std::vector<std::string> source;   // [sample]
  std::vector<std::string> target;   // [sample]; empty if there are no translations
  std::vector<std::int32_t> labels;  // [sample]; empty if there are no labels
  std::int64_t size() const { return static_cast<std::int64_t>(source.size()); }
};

RawTexts selected(const RawTexts& texts, const std::vector<std::int64_t>& indices);

// Histogram of the brightness of one colour channel.
struct ChannelCounts {
  std::string name;                  // "red", "green", "blue"; "grey" if there is only one
  std::vector<std::int64_t> counts;  // [64]: number of pixels with values 4i … 4i + 3
};
inline constexpr int brightness_bins = 64;

// Statistics of a data set for the figures of a report.
struct DataProfile {
  // Number of samples of each class, for train, validation and test. Empty if samples have no classes.
  std::array<std::vector<std::int64_t>, 3> classes;
  std::vector<ChannelCounts> channels;  // of the training part; empty if samples are not images
  // Names of the classes in the user's own data. Empty for other data (datasets/class_names.h).
  std::vector<std::string> class_names = {};
};

DataProfile profile_of(const Splits& splits);

}  // namespace trainyard::models
