#include "models/datasets/synthetic_texts.h"

#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "models/samples/tokenizer.h"
#include "tests/models/tokens.h"

using namespace trainyard::models;
using trainyard::tests::tokens_of;

namespace {

// The accuracy of naive Bayes with add-one smoothing, the textbook classifier of texts.
double naive_bayes_accuracy(const RawTexts& train, const RawTexts& test) {
  std::map<std::string, std::array<double, 2>> counts;
  std::array<double, 2> totals{};
  for (std::size_t i = 0; i < train.source.size(); ++i)
    for (const std::string& token : tokens_of(train.source[i])) {
      ++counts[token].at(train.labels[i]);
      ++totals.at(train.labels[i]);
    }
  int right = 0;
  for (std::size_t i = 0; i < test.source.size(); ++i) {
    double odds = 0;
    for (const std::string& token : tokens_of(test.source[i])) {
      const auto found = counts.find(token);
      if (found == counts.end()) continue;
      odds += std::log((found->second[1] + 1) / totals[1]) - std::log((found->second[0] + 1) / totals[0]);
    }
    right += (odds > 0) == (test.labels[i] == 1) ? 1 : 0;
  }
  return right / static_cast<double>(test.size());
}

std::set<std::string> vocabulary(const std::vector<std::string>& texts) {
  std::set<std::string> words;
  for (const std::string& text : texts)
    for (std::string& token : tokens_of(text)) words.insert(std::move(token));
  return words;
}

}  // namespace

TEST_CASE("synthetic texts depend only on the seed") {
  CHECK(synthetic_reviews(3).test.source == synthetic_reviews(3).test.source);
  CHECK(synthetic_reviews(3).test.source != synthetic_reviews(4).test.source);
  CHECK(synthetic_reviews(3).test.source != synthetic_reviews(3).validation.source);
  CHECK(synthetic_phrases(3).train.target == synthetic_phrases(3).train.target);
  CHECK(synthetic_phrases(3).train.target != synthetic_phrases(4).train.target);
}

TEST_CASE("synthetic reviews are balanced, have many lengths, and can be classified by their words") {
  const Parts<RawTexts> parts = synthetic_reviews(0);
  CHECK(parts.train.size() == 2000);
  CHECK(parts.validation.size() == 500);
  CHECK(parts.test.size() == 500);
  CHECK(std::count(parts.train.labels.begin(), parts.train.labels.end(), 1) == 1000);
  CHECK(std::count(parts.test.labels.begin(), parts.test.labels.end(), 1) == 250);
  std::set<std::size_t> lengths;
  for (const std::string& text : parts.train.source) lengths.insert(tokens_of(text).size());
  CHECK(*lengths.begin() < 10);
  CHECK(*lengths.rbegin() > 70);
  CHECK(lengths.size() > 50);
  const double accuracy = naive_bayes_accuracy(parts.train, parts.test);
  CHECK(accuracy > 0.8);
  CHECK(accuracy < 0.98);  // negations cannot be recognised by counting words
}

TEST_CASE("synthetic phrases have some hundred words, and the test part has no others") {
  const Parts<RawTexts> parts = synthetic_phrases(0);
  CHECK(parts.train.size() == 2000);
  CHECK(parts.validation.size() == 250);
  CHECK(parts.test.size() == 250);
  const auto german = vocabulary(parts.train.source);
  const auto english = vocabulary(parts.train.target);
  CHECK(german.size() > 200);
  CHECK(german.size() < 400);
  CHECK(english.size() > 120);
  CHECK(english.size() < german.size());
  for (const std::string& word : vocabulary(parts.test.source)) CHECK(german.contains(word));
  for (const std::string& word : vocabulary(parts.test.target)) CHECK(english.contains(word));
}

TEST_CASE("in a synthetic phrase the words are translated, and the verb moves") {
  const Parts<RawTexts> parts = synthetic_phrases(0);
  int because = 0;
  int apart = 0;
  for (std::size_t i = 0; i < parts.train.source.size(); ++i) {
    const std::string& german = parts.train.source[i];
    const std::string& english = parts.train.target[i];
    const auto both = [&](const char* word, const char* translated) {
      return (german.find(word) != std::string::npos) == (english.find(translated) != std::string::npos);
    };
    CHECK(both("Hund", "dog"));
    CHECK(both("Fahrrad", "bicycle"));
    CHECK(both("gesehen", "seen"));
    CHECK(both(", weil ", " because "));
    CHECK(both("?", "?"));
    because += german.find(", weil ") != std::string::npos ? 1 : 0;
    if (german.find(" hat ") != std::string::npos && german.ends_with("gesehen.")) {
      CHECK(english.find("has seen") != std::string::npos);
      ++apart;
    }
  }
  CHECK(because > 200);
  CHECK(apart > 5);
}
