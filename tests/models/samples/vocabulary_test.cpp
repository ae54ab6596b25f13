#include <doctest/doctest.h>

#include "models/samples/tokenizer.h"
#include "tests/models/tokens.h"

using namespace trainyard::models;
using trainyard::tests::tokens_of;

namespace {

TokenCounts counts_of(std::string_view text) {
  TokenCounts counts;
  for (const std::string& token : tokens_of(text)) ++counts[token];
  return counts;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("the most frequent word is first, and equally frequent words are in the order of their bytes") {
  const TokenCounts counts = counts_of("b b b a a ö ö z z once");
  CHECK(frequent_words(counts, 1, 100) == Words{"b", "a", "z", "ö", "once"});
  CHECK(frequent_words(counts, 2, 100) == Words{"b", "a", "z", "ö"});
  CHECK(frequent_words(counts, 4, 100).empty());
}

TEST_CASE("the maximum size of a vocabulary includes the special tokens") {
  const TokenCounts counts = counts_of("b b b a a z");
  CHECK(frequent_words(counts, 1, 6) == Words{"b", "a"});
  CHECK(frequent_words(counts, 1, 4).empty());
}

TEST_CASE("four special tokens have fixed numbers, and an unknown word is <unk>") {
  const Vocabulary vocabulary({"der", "hund"});
  CHECK(pad_token == 0);
  CHECK(unknown_token == 1);
  CHECK(begin_token == 2);
  CHECK(end_token == 3);
  CHECK(vocabulary.number("der") == 4);
  CHECK(vocabulary.number("hund") == 5);
  CHECK(vocabulary.number("katze") == unknown_token);
  CHECK(vocabulary.number("<pad>") == unknown_token);  // a text cannot spell a special token
}
