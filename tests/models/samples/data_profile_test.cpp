#include <doctest/doctest.h>

#include "models/samples/samples.h"

using namespace trainyard::models;

TEST_CASE("classes are counted per part, brightness per channel") {
  Splits splits;
  // two images of three channels and 1 × 2 pixels: the red, the green, then the blue plane
  splits.train = Images{{3, 1, 2}, {0, 3, 4, 255, 128, 128, 0, 0, 7, 8, 252, 251}, {1, 1}};
  splits.validation = Images{{3, 1, 2}, std::vector<std::uint8_t>(6, 0), {0}};
  splits.test = Images{{3, 1, 2}, {}, {}};
  const DataProfile profile = profile_of(splits);
  CHECK(profile.classes[0] == std::vector<std::int64_t>{0, 2});
  CHECK(profile.classes[1] == std::vector<std::int64_t>{1, 0});
  CHECK(profile.classes[2] == std::vector<std::int64_t>{0, 0});
  REQUIRE(profile.channels.size() == 3);
  CHECK(profile.channels[0].name == "red");
  CHECK(profile.channels[0].counts[0] == 4);   // 0, 3, 0, 0
  CHECK(profile.channels[1].counts[1] == 2);   // 4, 7
  CHECK(profile.channels[1].counts[2] == 1);   // 8
  CHECK(profile.channels[1].counts[63] == 1);  // 255
  CHECK(profile.channels[2].counts[32] == 2);  // 128 twice
  CHECK(profile.channels[2].counts[63] == 1);  // 252
  CHECK(profile.channels[2].counts[62] == 1);  // 251
}

TEST_CASE("texts have classes but no channels, and translations have neither") {
  Splits texts;
  Texts some;
  const std::int32_t token = 5;
  some.tokens.append({&token, 1});
  some.labels = {1};
  texts.train = some;
  texts.validation = texts.test = Texts{};
  CHECK(profile_of(texts).classes[0] == std::vector<std::int64_t>{0, 1});
  CHECK(profile_of(texts).channels.empty());
  Splits pairs{TextPairs{}, TextPairs{}, TextPairs{}};
  CHECK(profile_of(pairs).classes[0].empty());
}
