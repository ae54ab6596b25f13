#include "models/samples/byte_pairs.h"

#include <doctest/doctest.h>

#include "tests/support/user_error.h"

using namespace trainyard::models;
using trainyard::tests::user_error_of;

namespace {

using Numbers = std::vector<std::int32_t>;

// Hugging Face's tokenizers 0.23.3 has made these merges from the first 60,000 characters of Tiny Shakespeare.
constexpr const char* merges =
    "#version: 0.2\n"
    "Ġ t\nh e\no u\nĠ a\nĠt he\nĠ s\nĠ w\nr e\ni n\nh a\nĠ m\nn d\n"
    "i t\nĠ b\ne r\no r\no n\nl l\ne n\ne s\nĠ y\nĠ f\ni s\nĠy ou\n";

std::string error_of(const std::string& text) {
  return user_error_of([&] { BytePairs(text, "m.txt"); });
}

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    pieces.emplace_back(text.substr(0, first_piece(text)));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

}  // namespace

TEST_CASE("byte pairs have the numbers that Hugging Face's tokenizers give with the same merges") {
  const BytePairs pairs(merges, "merges.txt");
  CHECK(pairs.size() == 280);
  CHECK(pairs.numbers("the  thing's here, and\n\nthou 'tis 42 ä日 the ") ==
        Numbers{83, 257, 220, 256, 71, 264, 70,  6,  82, 220, 257, 263, 11,  259, 267, 198, 198, 83,
                71, 258, 220, 6,   83, 278, 220, 19, 17, 220, 127, 97,  162, 245, 98,  260, 220});
  CHECK(pairs.numbers("I'll  \t x\n") == Numbers{40, 6, 273, 220, 220, 197, 220, 87, 198});
  CHECK(pairs.numbers("").empty());
}

TEST_CASE("a text is split into pieces by the pattern of GPT-2") {
  using Pieces = std::vector<std::string>;
  CHECK(pieces_of("I'll  go, 42nd \n x") == Pieces{"I", "'ll", " ", " go", ",", " 42", "nd", " \n", " x"});
  CHECK(pieces_of(" 's''s!") == Pieces{" '", "s", "''", "s", "!"});
  CHECK(pieces_of("a  ") == Pieces{"a", "  "});
  CHECK(pieces_of("\n\na") == Pieces{"\n", "\n", "a"});
}

TEST_CASE("a damaged file of merges is an error with its line") {
  const std::string advice = "; use the merges.txt of a byte-level encoding, as GPT-2 has it";
  CHECK(error_of("h e\nhe l l\n") == "m.txt:2: a merge is two tokens with one space between them" + advice);
  CHECK(error_of("h e\nl\n") == "m.txt:2: a merge is two tokens with one space between them" + advice);
  CHECK(error_of("#version: 0.2\r\nh e\r\nhe r</w>\r\n") ==
        "m.txt:3: the token \"r</w>\" is neither a byte nor the result of an earlier line" + advice);
  CHECK(error_of("h e\nh e\n") == "m.txt:2: an earlier line has the same merge" + advice);
  CHECK(error_of("#version: 0.2\n") == "m.txt has no merges; use a merges.txt as GPT-2 has it");
}

TEST_CASE("two merges that make the same token give it one number") {
  const BytePairs pairs("a b\nb c\nab c\na bc\n", "m.txt");
  CHECK(pairs.size() == 259);
  CHECK(pairs.numbers("abc") == Numbers{258});
}
