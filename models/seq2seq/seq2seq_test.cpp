#include <doctest/doctest.h>

#include "tests/models/chains.h"

using namespace trainyard::models;
using namespace trainyard::tests;

TEST_CASE("Seq2Seq has the layers, parameters and operations of PyTorch's") {
  const InputShape input{.image = {},
                         .classes = 0,
                         .vocabulary = 8000,
                         .target_vocabulary = 6000,
                         .source_length = 14,
                         .target_length = 13};
  const auto layers = layers_of("seq2seq", input);
  CHECK(kinds(layers) ==
        "0:source_embedding 1:dropout 2:encoder_lstm 3:dropout 4:encoder_lstm 5:target_embedding 6:dropout "
        "7:decoder_lstm 8:dropout 9:decoder_lstm 10:linear");
  CHECK(totals(layers).parameters == 14018416);
  CHECK(totals(layers).forward_flops == 278052864);
  CHECK(layers[0].forward_bytes == 2 * 14 * 256 * 4);
  CHECK(layers[5].forward_bytes == 2 * 13 * 256 * 4);
  CHECK(layers[2].forward_flops == 44040192);
  CHECK(layers[9].forward_flops == 54525952);
}
