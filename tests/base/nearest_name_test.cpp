#include <doctest/doctest.h>

#include "base/named_row.h"

namespace {
const std::vector<std::string> keys{"epochs", "batch", "learning_rate", "momentum", "seed"};
}

TEST_CASE("each kind of slip finds its name: a missing, added, wrong or swapped letter") {
  CHECK(nearest_name("epoch", keys) == "epochs");
  CHECK(nearest_name("epochss", keys) == "epochs");
  CHECK(nearest_name("batsh", keys) == "batch");
  CHECK(nearest_name("sede", keys) == "seed");  // two neighbours swapped: one edit
  CHECK(nearest_name("learningrate", keys) == "learning_rate");
  CHECK(nearest_name("momentum", keys) == "momentum");
}

TEST_CASE("a name is near within a third of its length, at least one edit") {
  CHECK(nearest_name("abcdefgh", std::vector<std::string>{"abcdefxy"}) ==
        "abcdefxy");                                                              // 2 edits of 8 letters
  CHECK(nearest_name("abcdefgh", std::vector<std::string>{"abcdexyz"}).empty());  // 3 edits
  CHECK(nearest_name("ab", std::vector<std::string>{"ac"}) == "ac");
  CHECK(nearest_name("ab", std::vector<std::string>{"cd"}).empty());
  CHECK(nearest_name("", keys).empty());
  CHECK(nearest_name("epochs", {}).empty());
}

TEST_CASE("the nearest wins, and of equally near ones the first") {
  CHECK(nearest_name("abcdef", std::vector<std::string>{"abcdxy", "abcdex"}) == "abcdex");
  CHECK(nearest_name("cat", std::vector<std::string>{"car", "bat", "can"}) == "car");
}

TEST_CASE("optimal string alignment edits no letter twice: CA to ABC takes 3, not 2") {
  CHECK(nearest_name("CA4567", std::vector<std::string>{"ABC4567"}).empty());
}

TEST_CASE("advice names the nearest, else all that is known") {
  CHECK(name_advice("epoch", keys) == "; did you mean \"epochs\"?");
  CHECK(name_advice("zzz", keys) == "; known are epochs, batch, learning_rate, momentum, seed");
  CHECK(name_advice("zzz", {}).empty());
}
