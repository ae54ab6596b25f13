#include "models/chain.h"

namespace trainyard::models {

static Graph cnn_graph(const Hyperparameters& values, const InputShape& input) {
  Chain chain(input);
  for (const std::int64_t channels : integers(values, "channels")) {
    chain.convolution(channels).relu().max_pool();
  }
  chain.flatten();
  for (const std::int64_t width : integers(values, "hidden")) chain.linear(width).relu();
  return chain.linear(input.classes).graph();
}

Model cnn() {
  return {.name = "cnn",
          .title = "CNN",
          .task = "classification",
          .datasets = {"mnist", "fashion-mnist", "synthetic-digits", "cifar10", "synthetic-color-digits",
                       "folder"},
          .hyperparameters = {sizes_parameter("channels", {16, 32}, 2, 2,
                                              "output channels of the two convolutions"),
                              sizes_parameter("hidden", {128}, 1, 1,
                                              "outputs of the hidden fully connected layer")},
          .about = "two 3x3 convolutions with ReLU and 2x2 max pooling, then two fully connected layers",
          .graph = cnn_graph};
}

}  // namespace trainyard::models
