#include "models/datasets/text_data.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/plain_file.h"
#include "base/sha256.h"
#include "models/datasets/synthetic_texts.h"
#include "models/readers/text_readers.h"
#include "models/samples/tokenizer.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

struct Source {
  Parts<RawTexts> parts;
  std::string fingerprint;
};

// The words of the vocabularies, and the mean lengths of the texts.
struct Words {
  std::vector<std::string> source;
  std::vector<std::string> target;  // empty if there are no translations
  std::int64_t source_length = 0;   // mean tokens, rounded up
  std::int64_t target_length = 0;
};

Source load(const Dataset& dataset, const fs::path& folder, std::uint64_t seed) {
  if (dataset.generated()) {
    const std::string recipe = fmt::format("{} version {} tokens {} seed {}", dataset.name,
                                           synthetic_texts_version, tokens_version, seed);
    return {.parts = dataset.kind == DataKind::texts ? synthetic_reviews(seed) : synthetic_phrases(seed),
            .fingerprint = sha256_hex(recipe)};
  }
  Sha256 hash;
  hash.update(fmt::format("tokens {}\n", tokens_version));
  Parts<RawTexts> parts =
      dataset.kind == DataKind::texts ? read_imdb(folder, hash) : read_multi30k(folder, hash);
  return {.parts = std::move(parts), .fingerprint = hash.hex()};
}

// The words of the texts of one side of the training part. Each text also has `extra` special tokens.
std::vector<std::string> words_of(const std::vector<std::string>& texts, const DataChoice& choice,
                                  std::int64_t extra, std::int64_t& mean_length) {
  TokenCounts counts;
  std::int64_t total = 0;
  for (const std::string& text : texts) {
    std::size_t count = 0;
    for_each_token(text, [&](std::string_view token) {
      count_token(counts, token);
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

std::string exact(double number) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

// A name that depends on everything that the words depend on.
std::string cache_name(const std::string& fingerprint, const DataChoice& choice) {
  std::string what = fmt::format("{} longest {} seed {} split", fingerprint, longest_text, choice.split_seed);
  for (const double fraction : choice.split) what += ' ' + exact(fraction);
  what += " samples " + (choice.train_samples ? std::to_string(*choice.train_samples) : "all");
  what += fmt::format(" frequency {} size {}", choice.vocabulary_min_frequency, choice.vocabulary_max_size);
  return "vocabulary-" + sha256_hex(what).substr(0, 32);
}

std::string to_lines(const Words& words) {
  std::string text = fmt::format("{} {} {} {}\n", words.source.size(), words.target.size(),
                                 words.source_length, words.target_length);
  for (const auto* side : {&words.source, &words.target})
    for (const std::string& word : *side) text += word + '\n';
  return text;
}

// Reads what `to_lines` wrote. Tokens contain no white space.
Words from_lines(const std::string& text) {
  std::istringstream lines(text);
  std::size_t sources = 0;
  std::size_t targets = 0;
  Words words;
  lines >> sources >> targets >> words.source_length >> words.target_length;
  words.source.resize(sources);
  words.target.resize(targets);
  for (auto* side : {&words.source, &words.target})
    for (std::string& word : *side) lines >> word;
  return words;
}

Words words_of_training(const RawTexts& train, const std::string& fingerprint, const DataChoice& choice,
                        const ContentCache& cache) {
  const std::string name = cache_name(fingerprint, choice);
  if (const auto kept = cache.get(name)) return from_lines(*kept);
  Words words = counted(train, choice);
  cache.put(name, to_lines(words));
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

constexpr std::size_t digest_line = 65;  // 64 digits and a newline

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

// Write `content` to a new file. mkstemp completes `name`. False if the file cannot be written completely.
bool write_new(std::string& name, std::string_view content) {
  const int file = mkstemp(name.data());
  if (file < 0) return false;
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t some = ::write(file, content.data() + written, content.size() - written);
    if (some <= 0) break;
    written += static_cast<std::size_t>(some);
  }
  return ::close(file) == 0 && written == content.size();
}

}  // namespace

DataFacts text_facts(const Dataset& source, const fs::path& folder, const DataChoice& choice,
                     const ContentCache& cache) {
  Source found = load(source, folder, choice.split_seed);
  DataChoice named = choice;
  named.source = source.name;  // for messages
  const PartSizes sizes = sizes_of(found.parts);
  const RawTexts train = divided(named, std::move(found.parts)).train;
  const Words words = words_of_training(train, found.fingerprint, choice, cache);
  InputShape input = input_shape(source);
  input.vocabulary = special_tokens + static_cast<std::int64_t>(words.source.size());
  if (source.kind == DataKind::text_pairs)
    input.target_vocabulary = special_tokens + static_cast<std::int64_t>(words.target.size());
  input.source_length = words.source_length;
  input.target_length = words.target_length;
  return {.fingerprint = found.fingerprint, .input = input, .sizes = sizes};
}

Splits read_texts(const Dataset& dataset, const DataChoice& choice, const ContentCache& cache) {
  Source found = load(dataset, choice.folder, choice.split_seed);
  check_fingerprint(choice, found.fingerprint);
  Parts<RawTexts> parts = divided(choice, std::move(found.parts));
  const Words words = words_of_training(parts.train, found.fingerprint, choice, cache);
  const Vocabulary source(words.source);
  const Vocabulary target(words.target);
  const auto samples = [&](RawTexts& part) -> Samples {
    if (dataset.kind == DataKind::text_pairs)
      return TextPairs{.source = numbered(part.source, source, false, true),
                       .target = numbered(part.target, target, true, true)};
    return Texts{.tokens = numbered(part.source, source, false, false), .labels = std::move(part.labels)};
  };
  return {
      .train = samples(parts.train), .validation = samples(parts.validation), .test = samples(parts.test)};
}

std::optional<std::string> ContentCache::get(const std::string& name) const {
  if (folder_.empty()) return std::nullopt;
  PlainFileReader file(folder_ / name);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.size() < digest_line) return std::nullopt;
  std::string content = text.substr(digest_line);
  if (sha256_hex(content) + '\n' != text.substr(0, digest_line)) return std::nullopt;
  return content;
}

void ContentCache::put(const std::string& name, std::string_view content) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  std::string part = (folder_ / (name + ".XXXXXX")).string();
  std::string text = sha256_hex(content) + '\n';
  text += content;
  if (write_new(part, text)) fs::rename(part, folder_ / name, ignored);
  fs::remove(part, ignored);  // does nothing after the rename
}

ContentCache user_cache() {
  if (const std::string folder = variable("XDG_CACHE_HOME"); fs::path(folder).is_absolute())
    return ContentCache(fs::path(folder) / "trainyard");
  if (const std::string home = variable("HOME"); fs::path(home).is_absolute())
    return ContentCache(fs::path(home) / ".cache" / "trainyard");
  return ContentCache({});
}

}  // namespace trainyard::models
