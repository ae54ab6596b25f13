#include <doctest/doctest.h>

#include "base/error.h"
#include "models/samples/tokenizer.h"

using namespace trainyard::models;

namespace {

using Tokens = std::vector<std::string>;

}  // namespace

TEST_CASE("words are in lower case, whatever Latin letters they have, and punctuation stands alone") {
  CHECK(tokens_of("Zwei junge weiße Männer sind im Freien.") ==
        Tokens{"zwei", "junge", "weiße", "männer", "sind", "im", "freien", "."});
  CHECK(tokens_of("ÄRZTE, Übung und ÖL") == Tokens{"ärzte", ",", "übung", "und", "öl"});
  CHECK(tokens_of("ÉCOLE Łódź ŠKODA Ñandú Øre Þor ÇA") ==
        Tokens{"école", "łódź", "škoda", "ñandú", "øre", "þor", "ça"});
  CHECK(tokens_of("It's 10/10 -- a \"must-see\"!") ==
        Tokens{"it", "'", "s", "10", "/", "10", "-", "-", "a", "\"", "must", "-", "see", "\"", "!"});
}

TEST_CASE("characters of several bytes are kept whole") {
  CHECK(tokens_of("„Straße“ – 20€ 日本 😀😀") == Tokens{"„", "straße", "“", "–", "20", "€", "日本", "😀", "😀"});
  CHECK(tokens_of("a\u0308rger") == Tokens{"a\u0308rger"});  // a combining mark belongs to its letter
}

TEST_CASE("a line break of HTML separates, another tag is punctuation and words") {
  CHECK(tokens_of("good.<br /><br />Bad<br>x<br/>y") == Tokens{"good", ".", "bad", "x", "y"});
  CHECK(tokens_of("<b>a <3") == Tokens{"<", "b", ">", "a", "<", "3"});
}

TEST_CASE("white space and control characters of every kind separate") {
  CHECK(tokens_of(" a\tb\r\nc\u00a0d\u2003e\u0085f\u200bg ") == Tokens{"a", "b", "c", "d", "e", "f", "g"});
  CHECK(tokens_of("").empty());
  CHECK(tokens_of(" \n").empty());
}

TEST_CASE("tokens come until their user has enough") {
  int count = 0;
  for_each_token("one two three", [&](std::string_view) { return ++count < 2; });
  CHECK(count == 2);
}

TEST_CASE("the first byte that is not UTF-8 is found") {
  CHECK_FALSE(first_not_utf8("Größe 日本 😀"));
  CHECK(first_not_utf8("Gr\xf6\xdf"
                       "e") == 2);                                // Latin-1
  CHECK(first_not_utf8("a\xc3") == 1);                            // cut off
  CHECK(first_not_utf8("ab\xc0\xaf") == 2);                       // overlong
  CHECK(first_not_utf8("\xed\xa0\x80") == 0);                     // surrogate
  CHECK(first_not_utf8("ok \xf4\x90\x80\x80") == 3);              // beyond U+10FFFF
  CHECK_THROWS_AS(tokens_of("a\xff"), trainyard::InternalError);  // readers have checked
}
