#include <doctest/doctest.h>

#include "tests/models/chains.h"

using namespace trainyard::models;
using namespace trainyard::tests;

TEST_CASE("MobileNetV2 has the layers, parameters and operations of torchvision's") {
  const InputShape imagenet{.image = {3, 224, 224}, .classes = 1000};
  const auto published = layers_of("mobilenet-v2", imagenet, {{"stem", std::string("imagenet")}});
  CHECK(
      kinds(published).starts_with("0:conv2d 1:batch_norm2d 2:relu6 3:conv2d 4:batch_norm2d 5:relu6 "
                                   "6:conv2d 7:batch_norm2d 8:conv2d"));
  CHECK(kinds(published).ends_with("148:relu6 149:image_mean 150:dropout 151:linear"));
  // torchvision.models.MobileNet_V2_Weights: num_params, and _ops in 10⁹ multiply-adds, rounded
  CHECK(totals(published).parameters == 3504872);
  CHECK(totals(published).forward_flops == 2 * 300774272);
}
