#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/models/chains.h"

using namespace trainyard::models;
using namespace trainyard::tests;

namespace {
constexpr InputShape windows{.image = {0, 0, 0}, .vocabulary = 65, .source_length = 64};
}

TEST_CASE("GPT has the layers and parameters of nanoGPT's model, and operations per token and window") {
  const auto layers = layers_of("gpt", windows);
  CHECK(kinds(layers).starts_with(
      "0:token_embedding 1:dropout 2:layer_norm 3:linear 4:causal_attention 5:linear 6:dropout 7:add "
      "8:layer_norm 9:linear 10:gelu 11:linear 12:dropout 13:add 14:layer_norm"));
  CHECK(kinds(layers).ends_with("49:add 50:layer_norm 51:tied_linear"));
  CHECK(totals(layers).parameters == 804096);  // of nanoGPT: 12 · 4 · 128² + 65 · 128 + 64 · 128 + 9 · 128
  CHECK(totals(layers).forward_flops == 2 * 64 * (4 * (12 * 128 * 128 + 2 * 64 * 128) + 65 * 128));
  const auto untied = layers_of("gpt", windows, {{"tied_head", false}, {"bias", true}});
  CHECK(kinds(untied).ends_with("51:linear"));
  CHECK(totals(untied).parameters == 804096 + 65 * 128 + 4 * 11 * 128 + 128);
}

TEST_CASE("a stage of GPT begins between blocks: only one value and the tied weight cross") {
  const auto layers = layers_of("gpt", windows);
  for (std::size_t i = 2; i < 50; ++i) CHECK(layers[i].begins_block == ((i - 2) % 6 == 0));
}

TEST_CASE("the width of GPT must be a multiple of its heads") {
  CHECK_THROWS_WITH_AS(
      layers_of("gpt", windows, {{"heads", std::int64_t{3}}}),
      "the width 128 of model \"gpt\" is not a multiple of its 3 heads; change width or heads",
      trainyard::UserError);
}
