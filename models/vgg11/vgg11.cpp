// VGG, configuration A with batch normalisation: Simonyan, Zisserman, "Very deep convolutional networks for
// large-scale image recognition", ICLR 2015, table 1. Ioffe, Szegedy, "Batch normalization", ICML 2015.
#include "models/chain.h"

namespace trainyard::models {

// The convolutions before each of the five pooling layers: their channels, as a multiple of the first one's.
// They have no bias, because batch normalisation has one.
static const std::vector<std::vector<std::int64_t>> blocks{{1}, {2}, {4, 4}, {8, 8}, {8, 8}};

static void add_head(Chain& chain, const Hyperparameters& values) {
  if (text(values, "head") == "compact") return;
  const std::int64_t width = integer(values, "head_width");
  const double dropout = number(values, "dropout");
  for (int i = 0; i < 2; ++i) chain.linear(width).relu().dropout(dropout);
}

static Graph vgg11_graph(const Hyperparameters& values, const InputShape& input) {
  const std::int64_t width = integer(values, "width");
  Chain chain(input);
  for (const auto& block : blocks) {
    for (const std::int64_t factor : block) {
      chain.convolution(width * factor, {.bias = false}).batch_normalisation().relu();
    }
    chain.max_pool();
  }
  chain.flatten();
  add_head(chain, values);
  return chain.linear(input.classes).graph();
}

Model vgg11() {
  return {
      .name = "vgg11",
      .title = "VGG11",
      .task = "classification",
      .datasets = {"cifar10", "synthetic-color-digits", "folder"},
      .hyperparameters =
          {size_parameter("width", 64,
                          "channels of the first convolution; the others have 2 to 8 times as many"),
           choice_parameter("head", {"compact", "paper"},
                            "compact: one linear layer; paper: two hidden layers before it"),
           size_parameter("head_width", 4096, "outputs of each hidden layer of the head \"paper\""),
           dropout_parameter(0.5, "probability; applied after each hidden layer of the head \"paper\"")},
      .about = "configuration A: eight 3x3 convolutions with batch normalisation, images of 32x32 or more",
      .graph = vgg11_graph};
}

}  // namespace trainyard::models
