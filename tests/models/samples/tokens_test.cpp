#include "tests/models/tokens.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "models/samples/tokenizer.h"

using namespace trainyard::models;
using trainyard::tests::tokens_of;

namespace {

using Tokens = std::vector<std::string>;

}  // namespace

TEST_CASE("a word is in lower case in any Latin alphabet, and each punctuation mark is a token") {
  CHECK(tokens_of("Zwei junge weiße Männer sind im Freien.") ==
        Tokens{"zwei", "junge", "weiße", "männer", "sind", "im", "freien", "."});
  CHECK(tokens_of("ÄRZTE, Übung und ÖL") == Tokens{"ärzte", ",", "übung", "und", "öl"});
  CHECK(tokens_of("ÉCOLE Łódź ŠKODA Ñandú Øre Þor ÇA") ==
        Tokens{"école", "łódź", "škoda", "ñandú", "øre", "þor", "ça"});
  CHECK(tokens_of("It's 10/10 -- a \"must-see\"!") ==
        Tokens{"it", "'", "s", "10", "/", "10", "-", "-", "a", "\"", "must", "-", "see", "\"", "!"});
}

TEST_CASE("a character of several bytes is never divided") {
  CHECK(tokens_of("„Straße“ – 20€ 日本 😀😀") == Tokens{"„", "straße", "“", "–", "20", "€", "日本", "😀", "😀"});
  CHECK(tokens_of("a\u0308rger") == Tokens{"a\u0308rger"});  // a combining mark belongs to its letter
}

TEST_CASE("an HTML line break separates tokens, any other tag is punctuation and words") {
  CHECK(tokens_of("good.<br /><br />Bad<br>x<br/>y") == Tokens{"good", ".", "bad", "x", "y"});
  CHECK(tokens_of("<b>a <3") == Tokens{"<", "b", ">", "a", "<", "3"});
}

TEST_CASE("white space and control characters of every kind separate tokens") {
  CHECK(tokens_of(" a\tb\r\nc\u00a0d\u2003e\u0085f\u200bg ") == Tokens{"a", "b", "c", "d", "e", "f", "g"});
  CHECK(tokens_of("").empty());
  CHECK(tokens_of(" \n").empty());
}

TEST_CASE("no token follows after the caller has returned false") {
  int count = 0;
  for_each_token("one two three", [&](std::string_view) { return ++count < 2; });
  CHECK(count == 2);
}

TEST_CASE("a text that is not UTF-8 is an internal error, because readers check texts") {
  CHECK_THROWS_AS(tokens_of("a\xff"), trainyard::InternalError);
}
