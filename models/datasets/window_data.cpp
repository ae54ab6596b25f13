#include "models/datasets/window_data.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "models/datasets/synthetic_texts.h"
#include "models/readers/data_file.h"
#include "models/readers/text_readers.h"
#include "models/samples/byte_pairs.h"
#include "models/samples/tokenizer.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

struct Found {
  Parts<Windows> parts;
  std::int64_t vocabulary = 0;
  std::string fingerprint;
};

std::vector<std::uint32_t> characters_of(std::string_view text) {
  std::vector<std::uint32_t> codes;
  codes.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    if (!character.valid) throw InternalError("the text to cut into windows is not UTF-8");
    codes.push_back(character.code);
    text.remove_prefix(character.bytes);
  }
  return codes;
}

// All different characters, in the order of their codes.
std::vector<std::uint32_t> alphabet_of(std::vector<std::uint32_t> characters) {
  std::ranges::sort(characters);
  characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  return characters;
}

std::vector<std::int32_t> numbered(const std::vector<std::uint32_t>& characters,
                                   const std::vector<std::uint32_t>& alphabet) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(characters.size());
  for (const std::uint32_t code : characters)
    tokens.push_back(static_cast<std::int32_t>(
        special_tokens + (std::ranges::lower_bound(alphabet, code) - alphabet.begin())));
  return tokens;
}

// The tokens of a text, and the size of their vocabulary.
struct Tokens {
  std::vector<std::int32_t> numbers;
  std::int64_t vocabulary = 0;
};

Tokens characters_in(const std::string& text) {
  const std::vector<std::uint32_t> characters = characters_of(text);
  const std::vector<std::uint32_t> alphabet = alphabet_of(characters);
  return {.numbers = numbered(characters, alphabet),
          .vocabulary = special_tokens + static_cast<std::int64_t>(alphabet.size())};
}

std::size_t train_tokens(std::size_t tokens) {
  return tokens * 90 / 100;
}

// The vocabulary is that of the training part.
Tokens words_in(const std::string& text, const DataChoice& choice) {
  std::size_t total = 0;
  for_each_token(text, [&](std::string_view) {
    ++total;
    return true;
  });
  TokenCounts counts;
  std::size_t counted = 0;
  for_each_token(text, [&](std::string_view word) {
    if (counted++ == train_tokens(total)) return false;
    ++counts[std::string(word)];
    return true;
  });
  const std::vector<std::string> words =
      frequent_words(counts, choice.vocabulary_min_frequency, choice.vocabulary_max_size);
  const Vocabulary vocabulary(words);
  Tokens tokens{.numbers = {}, .vocabulary = special_tokens + static_cast<std::int64_t>(words.size())};
  tokens.numbers.reserve(total);
  for_each_token(text, [&](std::string_view word) {
    tokens.numbers.push_back(vocabulary.number(word));
    return true;
  });
  return tokens;
}

// The tokens of the choice. What they depend on beside the text is added to `hash`.
Tokens tokens_in(const std::string& text, const DataChoice& choice, Sha256& hash) {
  if (choice.tokens == "characters") return characters_in(text);
  hash.update(fmt::format("tokens {} {}\n", choice.tokens, tokens_version));
  if (choice.tokens == "words") return words_in(text, choice);
  const std::string merges = read_text_file(choice.bpe_file, "use a merges.txt as GPT-2 has it");
  hash.update(merges);
  const BytePairs pairs(merges, choice.bpe_file);
  return {.numbers = pairs.numbers(text), .vocabulary = pairs.size()};
}

// A text that is cut into windows, and what errors call it.
struct WindowSource {
  std::string place;  // file, folder or generated data set
  std::string kind;   // "characters"
  std::int64_t length = 0;
};

Windows windows_of(std::span<const std::int32_t> tokens, const char* part, const WindowSource& source) {
  const auto step = static_cast<std::size_t>(source.length);
  if (tokens.size() <= step)
    throw UserError(fmt::format("{}: the {} part has {} {}, but windows of {} need at least {}", source.place,
                                part, tokens.size(), source.kind, source.length, source.length + 1),
                    "reduce window_length, or use a longer text");
  Windows windows;
  for (std::size_t first = 0; first + step < tokens.size(); first += step)
    windows.tokens.append(tokens.subspan(first, step + 1));
  return windows;
}

Parts<Windows> cut(const std::vector<std::int32_t>& tokens, const WindowSource& source) {
  const std::span<const std::int32_t> all(tokens);
  const std::size_t train = train_tokens(all.size());
  const std::size_t validation = all.size() * 5 / 100;
  return {.train = windows_of(all.first(train), "training", source),
          .validation = windows_of(all.subspan(train, validation), "validation", source),
          .test = windows_of(all.subspan(train + validation), "test", source)};
}

// The text of the data set. Its content, or the recipe of generated data, is added to `hash`.
std::string read_text(const Dataset& dataset, const fs::path& folder, std::uint64_t seed, Sha256& hash) {
  if (dataset.generated()) {
    hash.update(fmt::format("{} version {} windows {} seed {}", dataset.name, synthetic_texts_version,
                            windows_version, seed));
    return synthetic_prose(seed);
  }
  hash.update(fmt::format("windows {}\n", windows_version));
  return dataset.format == DataFormat::own_text ? read_own_text(folder, hash)
                                                : read_whole_text(folder, dataset.files.front(), hash);
}

Found find(const Dataset& dataset, const fs::path& folder, const DataChoice& choice) {
  Sha256 hash;
  const std::string text = read_text(dataset, folder, choice.split_seed, hash);
  const Tokens tokens = tokens_in(text, choice, hash);
  WindowSource source{.place = dataset.name,
                      .kind = choice.tokens == "bpe" ? "tokens" : choice.tokens,
                      .length = choice.window_length};
  if (!dataset.generated())
    source.place =
        (dataset.format == DataFormat::own_text ? folder : folder / dataset.files.front()).string();
  return {.parts = cut(tokens.numbers, source), .vocabulary = tokens.vocabulary, .fingerprint = hash.hex()};
}

}  // namespace

DataFacts window_facts(const Dataset& source, const fs::path& folder, const DataChoice& choice) {
  const Found found = find(source, folder, choice);
  InputShape input = input_shape(source);
  input.vocabulary = found.vocabulary;
  input.source_length = choice.window_length;
  return {.fingerprint = found.fingerprint, .input = input, .sizes = sizes_of(found.parts)};
}

Splits read_windows(const Dataset& source, const DataChoice& choice) {
  Found found = find(source, choice.folder, choice);
  check_fingerprint(choice, found.fingerprint);
  return divided(choice, std::move(found.parts)).each([](Windows& part) -> Samples {
    return std::move(part);
  });
}

}  // namespace trainyard::models
