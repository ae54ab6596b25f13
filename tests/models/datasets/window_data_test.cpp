#include "models/datasets/window_data.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "models/datasets/synthetic_texts.h"
#include "models/samples/tokenizer.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int32_t>;

const Dataset& plays() {
  return find_dataset("tiny-shakespeare");
}

DataChoice windows_in(const fs::path& folder, std::int64_t length) {
  DataChoice choice;
  choice.dataset = choice.source = "tiny-shakespeare";
  choice.folder = folder;
  choice.window_length = length;
  return choice;
}

// "abcdefghij" again and again: the numbers 4 … 13.
std::string alphabet(int characters) {
  std::string text;
  for (int i = 0; i < characters; ++i) text += static_cast<char>('a' + i % 10);
  return text;
}

// All windows, in the order of their first numbers.
std::vector<Numbers> sorted(const Samples& samples) {
  const auto& windows = std::get<Windows>(samples);
  std::vector<Numbers> all;
  for (std::int64_t i = 0; i < windows.size(); ++i) {
    const auto window = windows.tokens[i];
    all.emplace_back(window.begin(), window.end());
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace

TEST_CASE("a text is cut by position, and each window begins with the last token of the one before") {
  const DataFolder folder;
  folder.write("input.txt", alphabet(60));  // parts of 54, 3 and 3 characters
  DataChoice choice = windows_in(folder.path(), 2);
  Splits splits = read(choice);
  CHECK(sample_count(splits.train) == 26);  // 0 – 2, 2 – 4, …, 50 – 52; character 53 is left out
  CHECK(sorted(splits.train).front() == Numbers{4, 5, 6});
  CHECK(sorted(splits.train).back() == Numbers{12, 13, 4});
  CHECK(sorted(splits.validation) == std::vector<Numbers>{{8, 9, 10}});  // characters 54 – 56
  CHECK(sorted(splits.test) == std::vector<Numbers>{{11, 12, 13}});
  const DataFacts found = facts(plays(), folder.path(), choice);
  CHECK(found.input == InputShape{.image = {0, 0, 0}, .classes = 0, .vocabulary = 14, .source_length = 2});
  CHECK(found.sizes.train == 26);
  CHECK(found.sizes.test == 1);
  choice.train_samples = 3;
  CHECK(sample_count(read(choice).train) == 3);
  CHECK(sorted(read(choice).test) == sorted(splits.test));
  CHECK(facts(plays(), folder.path(), choice).input.vocabulary == 14);
  choice.train_samples = 27;
  CHECK(user_error_of([&] { read(choice); }) ==
        "train_samples is 27, but the training part of tiny-shakespeare has 26 samples; use at most 26");
}

TEST_CASE("a token is a character of Unicode, with its case, and the order is that of the codes") {
  const DataFolder folder;
  folder.write("input.txt.gz",
               "\xC3\xA4\x61"
               "B\n" +
                   alphabet(56));  // "äaB" and a line break
  const DataChoice choice = windows_in(folder.path(), 2);
  CHECK(facts(plays(), folder.path(), choice).input.vocabulary == special_tokens + 13);
  const Splits splits = read(choice);
  const auto& train = std::get<Windows>(splits.train);
  // line break 4, "B" 5, "a" 6 … "j" 15, "ä" 16
  CHECK(std::ranges::count(train.tokens.tokens, 16) == 1);
  CHECK(sorted(splits.train).back() == Numbers{16, 6, 5});
}

TEST_CASE("the fingerprint depends on the text and not on its packing or the windows") {
  const DataFolder plain, packed, other;
  plain.write("input.txt", alphabet(100));
  packed.write("input.txt.gz", alphabet(100));
  other.write("input.txt", alphabet(101));
  const auto of = [](const DataFolder& folder, std::int64_t length) {
    return facts(plays(), folder.path(), windows_in(folder.path(), length)).fingerprint;
  };
  CHECK(of(plain, 2) == of(packed, 3));
  CHECK(of(plain, 2) != of(other, 2));
  DataChoice choice = windows_in(other.path(), 2);
  choice.fingerprint = of(plain, 2);
  CHECK(contains(user_error_of([&] { read(choice); }), "has changed since the run was planned"));
}

TEST_CASE("a text that is missing, too short or not UTF-8 is an error that says what to do") {
  const DataFolder folder;
  const std::string file = (folder.path() / "input.txt").string();
  const DataChoice choice = windows_in(folder.path(), 64);
  CHECK(user_error_of([&] { read(choice); }) ==
        file + " is missing, and so is input.txt.gz; download the data set again");
  folder.write("input.txt", alphabet(1299));
  CHECK(user_error_of([&] { read(choice); }) ==
        file +
            ": the validation part has 64 characters, but windows of 64 need at least 65; reduce "
            "window_length, or use a longer text");
  folder.write("input.txt", "");
  CHECK(contains(user_error_of([&] { read(choice); }), "the training part has 0 characters"));
  folder.write("input.txt", "ab\xff");
  CHECK(contains(user_error_of([&] { read(choice); }), "byte 2"));
}

TEST_CASE("words of the training part have numbers, and other words are unknown") {
  const DataFolder folder;
  std::string text;
  for (int i = 0; i < 45; ++i) text += i % 3 == 0 ? "The cat. " : "A cat! ";
  folder.write("a.txt", text.substr(0, text.size() - 8));  // 44 sentences of three tokens
  folder.write("b.txt", "Never!");
  DataChoice choice = windows_in(folder.path(), 2);
  choice.dataset = choice.source = "text";
  choice.tokens = "words";
  const Splits splits = read(choice);
  // 134 tokens, 120 of them the training part: cat 40, "!" 26, a 26, "." 14, the 14
  const DataFacts found = facts(find_dataset("text"), folder.path(), choice);
  CHECK(found.input.vocabulary == special_tokens + 5);
  CHECK(sorted(splits.train).front() == Numbers{4, 5, 6});  // "cat ! a"
  CHECK(sorted(splits.test).front().back() == unknown_token);
  choice.vocabulary_max_size = 6;
  CHECK(facts(find_dataset("text"), folder.path(), choice).input.vocabulary == 6);
  CHECK(facts(find_dataset("text"), folder.path(), choice).fingerprint == found.fingerprint);
  choice.tokens = "characters";
  CHECK(facts(find_dataset("text"), folder.path(), choice).fingerprint != found.fingerprint);
}

TEST_CASE("byte pairs of a file are tokens, and the fingerprint has the file") {
  const DataFolder folder;
  folder.write("a.txt", alphabet(100));
  const fs::path merges = folder.write("merges.bpe", "a b\nab c\n");
  DataChoice choice = windows_in(folder.path(), 2);
  choice.dataset = choice.source = "text";
  choice.tokens = "bpe";
  choice.bpe_file = merges.string();
  const DataFacts found = facts(find_dataset("text"), folder.path(), choice);
  CHECK(found.input.vocabulary == 258);
  // 8 tokens for 10 characters, and a line break: 81 tokens, 72 of them the training part
  const Splits splits = read(choice);
  CHECK(sample_count(splits.train) == 35);
  CHECK(sorted(splits.train).back() == Numbers{257, 'd' - '!', 'e' - '!'});
  folder.write("merges.bpe", "a b\nc d\n");
  CHECK(facts(find_dataset("text"), folder.path(), choice).fingerprint != found.fingerprint);
  folder.write("merges.bpe", "a b\nabc\n");
  CHECK(contains(user_error_of([&] { read(choice); }), merges.string() + ":2: a merge is two tokens"));
  choice.bpe_file = (folder.path() / "none").string();
  CHECK(contains(user_error_of([&] { read(choice); }), "none"));
}

TEST_CASE("synthetic prose is the English side of the phrases, with the same characters for each seed") {
  const std::string prose = synthetic_prose(1);
  const auto first = synthetic_phrases(1).train.target.front();
  CHECK(prose.starts_with(first + "\n"));
  CHECK(std::ranges::count(prose, '\n') == 2500);
  DataChoice choice;
  choice.dataset = choice.source = "synthetic-prose";
  const DataFacts found = facts(find_dataset("synthetic-prose"), {}, choice);
  CHECK(found.sizes.train > 1000);
  CHECK(found.sizes.validation > 50);
  CHECK(found.sizes.test > 50);
  for (choice.split_seed = 1; choice.split_seed < 6; ++choice.split_seed) {
    const DataFacts other = facts(find_dataset("synthetic-prose"), {}, choice);
    CHECK(other.input.vocabulary == found.input.vocabulary);
    CHECK(other.fingerprint != found.fingerprint);
  }
  CHECK(found.input.vocabulary < 69);  // a network for Tiny Shakespeare can train on its stand-in
}
