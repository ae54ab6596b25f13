#include <doctest/doctest.h>

#include "tests/models/chains.h"

using namespace trainyard::models;
using namespace trainyard::tests;

TEST_CASE(
    "the autoencoder has the layers, parameters and operations of PyTorch's for grey and colour images") {
  const auto grey = layers_of("conv-autoencoder", grey28);
  CHECK(kinds(grey) ==
        "0:conv2d 1:relu 2:conv2d 3:relu 4:conv2d 5:relu 6:conv_transpose2d 7:relu 8:conv_transpose2d 9:relu "
        "10:conv_transpose2d 11:sigmoid");
  CHECK(totals(grey).parameters == 46529);
  CHECK(totals(grey).forward_flops == 2195712);
  const auto color = layers_of("conv-autoencoder", color32);
  CHECK(totals(color).parameters == 47107);
  CHECK(totals(color).forward_flops == 2801664);
}
