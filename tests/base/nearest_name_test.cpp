#include <doctest/doctest.h>

#include "base/named_row.h"

using namespace trainyard;

namespace {
const std::vector<std::string> keys{"epochs", "batch", "learning_rate", "momentum", "seed"};
}

TEST_CASE("a name with a missing, added, wrong or swapped letter is found") {
  CHECK(nearest_name("epoch", keys) == "epochs");
  CHECK(nearest_name("epochss", keys) == "epochs");
  CHECK(nearest_name("batsh", keys) == "batch");
  CHECK(nearest_name("sede", keys) == "seed");  // two neighbours swapped: one edit
  CHECK(nearest_name("learningrate", keys) == "learning_rate");
  CHECK(nearest_name("momentum", keys) == "momentum");
}

TEST_CASE("a name is near if the edits are at most a third of its length, or one edit") {
  CHECK(nearest_name("abcdefgh", std::vector<std::string>{"abcdefxy"}) ==
        "abcdefxy");                                                              // 2 edits of 8 letters
  CHECK(nearest_name("abcdefgh", std::vector<std::string>{"abcdexyz"}).empty());  // 3 edits
  CHECK(nearest_name("ab", std::vector<std::string>{"ac"}) == "ac");
  CHECK(nearest_name("ab", std::vector<std::string>{"cd"}).empty());
  CHECK(nearest_name("", keys).empty());
  CHECK(nearest_name("epochs", {}).empty());
}

TEST_CASE("the nearest name is found, and the first of equally near names") {
  CHECK(nearest_name("abcdef", std::vector<std::string>{"abcdxy", "abcdex"}) == "abcdex");
  CHECK(nearest_name("cat", std::vector<std::string>{"car", "bat", "can"}) == "car");
}

TEST_CASE("a name in capital letters is near to the same name in small ones") {
  CHECK(nearest_name("DDP", std::vector<std::string>{"single", "ddp", "mp"}) == "ddp");
  CHECK(nearest_name("sgd", std::vector<std::string>{"Adam", "SGD"}) == "SGD");
  CHECK(name_advice("MP-DPP", std::vector<std::string>{"mp", "mp-ddp"}) == "; did you mean \"mp-ddp\"?");
}

TEST_CASE("a letter is edited only once: CA to ABC takes 3 edits, not 2") {
  CHECK(nearest_name("CA4567", std::vector<std::string>{"ABC4567"}).empty());
}

TEST_CASE("the advice is the nearest name, or all known names if none is near") {
  CHECK(name_advice("epoch", keys) == "; did you mean \"epochs\"?");
  CHECK(name_advice("zzz", keys) == "; choose from epochs, batch, learning_rate, momentum, seed");
  CHECK(name_advice("zzz", {}).empty());
}
