#include <doctest/doctest.h>

#include "tests/models/chains.h"

using namespace trainyard::models;
using namespace trainyard::tests;

TEST_CASE("the MLP has the layers, parameters and operations of PyTorch's") {
  const auto layers = layers_of("mlp", grey28);
  CHECK(kinds(layers) == "0:flatten 1:linear 2:relu 3:linear 4:relu 5:linear");
  CHECK(totals(layers).parameters == 222360);
  CHECK(totals(layers).forward_flops == 444000);
  CHECK(layers[1].parameters == 784 * 250 + 250);
  CHECK(totals(layers_of("mlp", color32)).parameters == 794360);
}

TEST_CASE("an MLP without a hidden layer is a linear model") {
  const auto linear = layers_of("mlp", grey28, {{"hidden", std::vector<std::int64_t>{}}});
  CHECK(kinds(linear) == "0:flatten 1:linear");
  CHECK(totals(linear).parameters == 7850);
}
