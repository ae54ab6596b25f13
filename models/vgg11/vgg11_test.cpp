#include <doctest/doctest.h>

#include "base/error.h"
#include "tests/models/chains.h"

using namespace trainyard::models;
using namespace trainyard::tests;

TEST_CASE("VGG11 has the layers, parameters and operations of PyTorch's with either head") {
  const auto compact = layers_of("vgg11", color32);
  CHECK(kinds(compact).starts_with("0:conv2d 1:batch_norm2d 2:relu 3:max_pool2d 4:conv2d"));
  CHECK(kinds(compact).ends_with("28:max_pool2d 29:flatten 30:linear"));
  CHECK(totals(compact).parameters == 9228362);
  CHECK(totals(compact).forward_flops == 305539072);
  const auto paper = layers_of("vgg11", color32, {{"head", std::string("paper")}});
  CHECK(kinds(paper).ends_with("30:linear 31:relu 32:dropout 33:linear 34:relu 35:dropout 36:linear"));
  CHECK(totals(paper).parameters == 28146762);
  CHECK(totals(paper).forward_flops == 343359488);
  CHECK(paper[32].dropout == 0.5);
}

TEST_CASE("VGG11 halves an image five times, so an image of 28×28 is an error") {
  CHECK_THROWS_WITH_AS(
      layers_of("vgg11", grey28),
      "images of 28×28 are too small for the 2×2 pooling layers of the model; use larger images "
      "or another model",
      trainyard::UserError);
}
