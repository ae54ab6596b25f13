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
#include "models/readers/text_readers.h"
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

Windows windows_of(std::span<const std::int32_t> tokens, const char* part, const std::string& text,
                   std::int64_t length) {
  const auto step = static_cast<std::size_t>(length);
  if (tokens.size() <= step)
    throw UserError(fmt::format("{}: the {} part has {} characters, but windows of {} need at least {}", text,
                                part, tokens.size(), length, length + 1),
                    "reduce window_length, or use a longer text");
  Windows windows;
  for (std::size_t first = 0; first + step < tokens.size(); first += step)
    windows.tokens.append(tokens.subspan(first, step + 1));
  return windows;
}

Parts<Windows> cut(const std::vector<std::int32_t>& tokens, const std::string& text, std::int64_t length) {
  const std::span<const std::int32_t> all(tokens);
  const std::size_t train = all.size() * 90 / 100;
  const std::size_t validation = all.size() * 5 / 100;
  return {.train = windows_of(all.first(train), "training", text, length),
          .validation = windows_of(all.subspan(train, validation), "validation", text, length),
          .test = windows_of(all.subspan(train + validation), "test", text, length)};
}

Found find(const Dataset& dataset, const fs::path& folder, const DataChoice& choice) {
  Sha256 hash;
  std::string text;
  if (dataset.generated()) {
    text = synthetic_prose(choice.split_seed);
    hash.update(fmt::format("{} version {} windows {} seed {}", dataset.name, synthetic_texts_version,
                            windows_version, choice.split_seed));
  } else {
    hash.update(fmt::format("windows {}\n", windows_version));
    text = read_whole_text(folder, dataset.files.front(), hash);
  }
  const std::vector<std::uint32_t> characters = characters_of(text);
  const std::vector<std::uint32_t> alphabet = alphabet_of(characters);
  const std::string place = dataset.generated() ? dataset.name : (folder / dataset.files.front()).string();
  return {.parts = cut(numbered(characters, alphabet), place, choice.window_length),
          .vocabulary = special_tokens + static_cast<std::int64_t>(alphabet.size()),
          .fingerprint = hash.hex()};
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
  Parts<Windows> parts = divided(choice, std::move(found.parts));
  return {.train = std::move(parts.train),
          .validation = std::move(parts.validation),
          .test = std::move(parts.test)};
}

}  // namespace trainyard::models
