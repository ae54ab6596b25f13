#include <doctest/doctest.h>

#include "tests/models/chains.h"

using namespace trainyard::models;
using namespace trainyard::tests;

TEST_CASE("the CNN has the layers, parameters and operations of PyTorch's for grey and colour images") {
  const auto grey = layers_of("cnn", grey28);
  CHECK(kinds(grey) ==
        "0:conv2d 1:relu 2:max_pool2d 3:conv2d 4:relu 5:max_pool2d 6:flatten 7:linear 8:relu 9:linear");
  CHECK(totals(grey).parameters == 206922);
  CHECK(totals(grey).forward_flops == 2436096);
  const auto color = layers_of("cnn", color32);
  CHECK(totals(color).parameters == 268650);
  CHECK(totals(color).forward_flops == 3770880);
}

TEST_CASE("hyper-parameters change the CNN's layers") {
  const auto small =
      layers_of("cnn", {{1, 28, 28}, 7},
                {{"channels", std::vector<std::int64_t>{2, 3}}, {"hidden", std::vector<std::int64_t>{5}}});
  CHECK(totals(small).parameters == (9 * 2 + 2) + (9 * 2 * 3 + 3) + (3 * 49 * 5 + 5) + (5 * 7 + 7));
}
