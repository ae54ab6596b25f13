#include "models/chain.h"

namespace trainyard::models {

static Graph conv_autoencoder_graph(const Hyperparameters& values, const InputShape& input) {
  const Kernel halving{.size = 3, .stride = 2, .padding = 1};
  Chain chain(input);
  std::vector<ImageShape> shapes;  // before each convolution
  for (const std::int64_t channels : integers(values, "channels")) {
    shapes.push_back(chain.shape());
    chain.convolution(channels, halving).relu();
  }
  for (std::size_t i = shapes.size(); i-- > 0;) {
    const ImageShape& to = shapes[i];
    chain.transposed_convolution(to.channels, halving, to.height, to.width);
    if (i > 0) chain.relu();
  }
  return chain.sigmoid().graph();
}

Model conv_autoencoder() {
  return {.name = "conv-autoencoder",
          .title = "ConvAutoencoder",
          .task = "reconstruction",
          .datasets = {"mnist", "cifar10", "fashion-mnist", "synthetic-digits", "synthetic-color-digits",
                       "folder"},
          .hyperparameters = {sizes_parameter("channels", {16, 32, 64}, 1, 5,
                                              "output channels of each convolution; each halves the image")},
          .about = "three 3x3 convolutions of stride 2, then three transposed ones back to the image",
          .graph = conv_autoencoder_graph};
}

}  // namespace trainyard::models
