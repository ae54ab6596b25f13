#include "models/datasets/text_data.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/sha256.h"
#include "models/datasets/synthetic_texts.h"
#include "models/readers/text_readers.h"
#include "models/samples/tokenizer.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

struct Source {
  Parts<RawTexts> parts;
  std::int64_t classes = 0;  // 0: as many as the data set has
  std::string fingerprint;
};

// The words of the vocabularies, and the mean lengths of the texts.
struct Words {
  std::vector<std::string> source;
  std::vector<std::string> target;  // empty if there are no translations
  std::int64_t source_length = 0;   // mean tokens, rounded up
  std::int64_t target_length = 0;
};

Source read_files(const Dataset& dataset, const fs::path& folder, const DataChoice& choice, Sha256& hash) {
  switch (dataset.format) {
    case DataFormat::text_folder: {
      FolderTexts found = read_text_folder(folder, hash);
      return {.parts = std::move(found.parts), .classes = found.classes, .fingerprint = {}};
    }
    case DataFormat::text_pairs:
      return {.parts = read_text_pairs(folder, choice.source_language, hash), .fingerprint = {}};
    case DataFormat::imdb:
      return {.parts = read_imdb(folder, hash), .fingerprint = {}};
    default:
      return {.parts = read_multi30k(folder, hash), .fingerprint = {}};
  }
}

Source load(const Dataset& dataset, const fs::path& folder, const DataChoice& choice) {
  if (dataset.generated()) {
    const std::uint64_t seed = choice.split_seed;
    const std::string recipe = fmt::format("{} version {} tokens {} seed {}", dataset.name,
                                           synthetic_texts_version, tokens_version, seed);
    return {.parts = dataset.kind == DataKind::texts ? synthetic_reviews(seed) : synthetic_phrases(seed),
            .fingerprint = sha256_hex(recipe)};
  }
  Sha256 hash;
  hash.update(fmt::format("tokens {}\n", tokens_version));
  Source found = read_files(dataset, folder, choice, hash);
  found.fingerprint = hash.hex();
  return found;
}

// The words of the texts of one side of the training part. Each text also has `extra` special tokens.
std::vector<std::string> words_of(const std::vector<std::string>& texts, const DataChoice& choice,
                                  std::int64_t extra, std::int64_t& mean_length) {
  TokenCounts counts;
  std::int64_t total = 0;
  for (const std::string& text : texts) {
    std::size_t count = 0;
    for_each_token(text, [&](std::string_view token) {
      ++counts[std::string(token)];
      return ++count < longest_text;
    });
    total += static_cast<std::int64_t>(count) + extra;
  }
  const auto size = static_cast<std::int64_t>(texts.size());
  mean_length = std::max<std::int64_t>(1, (total + size - 1) / size);
  return frequent_words(counts, choice.vocabulary_min_frequency, choice.vocabulary_max_size);
}

Words counted(const RawTexts& train, const DataChoice& choice) {
  Words words;
  const bool pairs = !train.target.empty();
  words.source = words_of(train.source, choice, pairs ? 1 : 0, words.source_length);
  if (pairs) words.target = words_of(train.target, choice, 1, words.target_length);
  return words;
}

void append_numbers(const std::string& text, const Vocabulary& vocabulary,
                    std::vector<std::int32_t>& numbers) {
  std::size_t count = 0;
  for_each_token(text, [&](std::string_view token) {
    numbers.push_back(vocabulary.number(token));
    return ++count < longest_text;
  });
  if (count == 0) numbers.push_back(unknown_token);
}

Sequences numbered(const std::vector<std::string>& texts, const Vocabulary& vocabulary, bool begin,
                   bool end) {
  Sequences sequences;
  std::vector<std::int32_t> numbers;
  for (const std::string& text : texts) {
    numbers.clear();
    if (begin) numbers.push_back(begin_token);
    append_numbers(text, vocabulary, numbers);
    if (end) numbers.push_back(end_token);
    sequences.append(numbers);
  }
  return sequences;
}

}  // namespace

DataFacts text_facts(const Dataset& source, const fs::path& folder, const DataChoice& choice) {
  Source found = load(source, folder, choice);
  DataChoice named = choice;
  named.source = source.name;  // for messages
  const PartSizes sizes = sizes_of(found.parts);
  const RawTexts train = divided(named, std::move(found.parts)).train;
  const Words words = counted(train, choice);
  InputShape input = input_shape(source);
  if (found.classes > 0) input.classes = found.classes;
  input.vocabulary = special_tokens + static_cast<std::int64_t>(words.source.size());
  if (source.kind == DataKind::text_pairs)
    input.target_vocabulary = special_tokens + static_cast<std::int64_t>(words.target.size());
  input.source_length = words.source_length;
  input.target_length = words.target_length;
  return {.fingerprint = found.fingerprint, .input = input, .sizes = sizes};
}

Splits read_texts(const Dataset& dataset, const DataChoice& choice) {
  Source found = load(dataset, choice.folder, choice);
  check_fingerprint(choice, found.fingerprint);
  Parts<RawTexts> parts = divided(choice, std::move(found.parts));
  const Words words = counted(parts.train, choice);
  const Vocabulary source(words.source);
  const Vocabulary target(words.target);
  const auto samples = [&](RawTexts& part) -> Samples {
    if (dataset.kind == DataKind::text_pairs)
      return TextPairs{.source = numbered(part.source, source, false, true),
                       .target = numbered(part.target, target, true, true)};
    return Texts{.tokens = numbered(part.source, source, false, false), .labels = std::move(part.labels)};
  };
  return parts.each(samples);
}

}  // namespace trainyard::models
