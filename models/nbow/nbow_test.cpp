#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/models/chains.h"

using namespace trainyard::models;
using namespace trainyard::tests;

TEST_CASE("NBoW has the layers, parameters and operations of PyTorch's") {
  const auto layers = layers_of("nbow", {.image = {}, .classes = 2, .vocabulary = 20000});
  CHECK(kinds(layers) == "0:mean_embedding 1:dropout 2:linear");
  CHECK(totals(layers).parameters == 6000602);
  CHECK(totals(layers).forward_flops == 1200);
}

TEST_CASE("the cost of NBoW is to read the vectors of the words and to write their mean") {
  const auto layers =
      layers_of("nbow", {.image = {}, .classes = 2, .vocabulary = 20000, .source_length = 240});
  CHECK(layers[0].forward_bytes == (240 + 1) * 300 * 4);
  CHECK(counted_cost(layers[0]) > counted_cost(layers[1]) + counted_cost(layers[2]));
  CHECK(counted_cost(layers[2]) == 1200);
}

TEST_CASE("a model of texts on data without a vocabulary is an internal error") {
  CHECK_THROWS_AS(layers_of("nbow", grey28), trainyard::InternalError);
}
