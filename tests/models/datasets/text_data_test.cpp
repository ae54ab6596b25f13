#include "models/datasets/text_data.h"

#include <doctest/doctest.h>

#include "models/samples/samples.h"
#include "models/samples/tokenizer.h"
#include "tests/support/data_folder.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

using Numbers = std::vector<std::int32_t>;

Numbers numbers(const Sequences& sequences, std::int64_t index) {
  const auto some = sequences[index];
  return {some.begin(), some.end()};
}

fs::path write_reviews(const DataFolder& folder, const std::string& positive) {
  return folder.write("aclImdb.tar.gz", tar({{"aclImdb/train/neg/0_1.txt", "bad bad film"},
                                             {"aclImdb/train/pos/0_9.txt", positive},
                                             {"aclImdb/test/neg/0_1.txt", "a bad idea"},
                                             {"aclImdb/test/pos/0_9.txt", " "}}));
}

DataChoice all_of(const std::string& source, const fs::path& folder) {
  DataChoice choice;
  choice.dataset = choice.source = source;
  choice.folder = folder;
  choice.split = {1, 0, 0};
  choice.vocabulary_min_frequency = 1;
  return choice;
}

}  // namespace

TEST_CASE("texts become token numbers of the vocabulary of the training part") {
  const DataFolder folder;
  const DataChoice choice = all_of("imdb", write_reviews(folder, "Film good"));
  const Splits splits = read_texts(find_dataset(choice.source), choice);
  const auto& train = std::get<Texts>(splits.train);
  // counts: bad 2, film 2, good 1; numbers: 4, 5, 6
  CHECK(train.size() == 2);
  const std::int64_t negative = train.labels[0] == 0 ? 0 : 1;
  CHECK(numbers(train.tokens, negative) == Numbers{4, 4, 5});
  CHECK(numbers(train.tokens, 1 - negative) == Numbers{5, 6});
  const auto& test = std::get<Texts>(splits.test);
  CHECK(numbers(test.tokens, 0) == Numbers{unknown_token, 4, unknown_token});
  CHECK(numbers(test.tokens, 1) == Numbers{unknown_token});  // a text without a token
  CHECK(test.labels == std::vector<std::int32_t>{0, 1});
  CHECK(sample_count(splits.validation) == 0);
  const InputShape input = text_facts(find_dataset("imdb"), choice.folder, choice).input;
  CHECK(input == InputShape{.image = {0, 0, 0}, .classes = 2, .vocabulary = 7, .source_length = 3});
}

TEST_CASE("a review is truncated to 400 tokens, and later words are not in the vocabulary") {
  const DataFolder folder;
  std::string positive;
  for (int i = 0; i < 400; ++i) positive += "word ";
  const DataChoice choice = all_of("imdb", write_reviews(folder, positive + "late late"));
  const Splits splits = read_texts(find_dataset(choice.source), choice);
  const auto& train = std::get<Texts>(splits.train);
  CHECK(train.tokens.tokens.size() == 403);
  CHECK(text_facts(find_dataset("imdb"), choice.folder, choice).input.vocabulary == 7);
}

TEST_CASE("the source of a pair ends with <eos>, and the target is between <bos> and <eos>") {
  const DataFolder folder;
  for (const std::string part : {"train", "val", "test_2016_flickr"}) {
    folder.write(part + ".de", part == "val" ? "Ein Hund läuft.\n" : "Ein Hund.\n");
    folder.write(part + ".en", "A dog.\n");
  }
  const DataChoice choice = all_of("multi30k", folder.path());
  const Splits splits = read_texts(find_dataset(choice.source), choice);
  const auto& train = std::get<TextPairs>(splits.train);
  CHECK(numbers(train.source, 0) == Numbers{5, 6, 4, end_token});  // "." 4, "ein" 5, "hund" 6
  CHECK(numbers(train.target, 0) == Numbers{begin_token, 5, 6, 4, end_token});
  CHECK(numbers(std::get<TextPairs>(splits.validation).source, 0) ==
        Numbers{5, 6, unknown_token, 4, end_token});
  const InputShape input = text_facts(find_dataset("multi30k"), folder.path(), choice).input;
  CHECK(input.vocabulary == 7);
  CHECK(input.target_vocabulary == 7);
  CHECK(input.source_length == 4);  // with <eos>
  CHECK(input.target_length == 4);  // without <bos>
}

TEST_CASE("the vocabulary does not depend on validation and test") {
  const DataFolder folder;
  std::vector<TarEntry> entries{{"test/neg/0.txt", "neverseen neverseen"}, {"test/pos/0.txt", "neverseen"}};
  for (int i = 0; i < 50; ++i)
    for (const std::string label : {"neg", "pos"})
      entries.push_back(
          {"train/" + label + "/" + std::to_string(i) + ".txt", "own" + label + std::to_string(i)});
  DataChoice choice = all_of("imdb", folder.write("a.tar.gz", tar(entries)));
  choice.split = {0.8, 0.2, 0};
  const auto facts = text_facts(find_dataset("imdb"), choice.folder, choice);
  CHECK(facts.input.vocabulary == 80 + special_tokens);
  const Splits splits = read_texts(find_dataset(choice.source), choice);
  for (const std::int32_t token : std::get<Texts>(splits.validation).tokens.tokens)
    CHECK(token == unknown_token);
  choice.train_samples = 30;  // only words that are trained on
  CHECK(text_facts(find_dataset("imdb"), choice.folder, choice).input.vocabulary == 34);
  choice.vocabulary_max_size = 10;
  CHECK(text_facts(find_dataset("imdb"), choice.folder, choice).input.vocabulary == 10);
}

TEST_CASE("texts that have changed since the run was planned are an error") {
  const DataFolder folder;
  DataChoice choice = all_of("imdb", write_reviews(folder, "good"));
  choice.fingerprint = text_facts(find_dataset("imdb"), choice.folder, choice).fingerprint;
  CHECK(sample_count(read_texts(find_dataset(choice.source), choice).train) == 2);
  write_reviews(folder, "great");
  CHECK(user_error_of([&] {
          read_texts(find_dataset(choice.source), choice);
        }).find("has changed since the run was planned") != std::string::npos);
}
