#include "models/chain.h"

namespace trainyard::models {

static Graph mlp_graph(const Hyperparameters& values, const InputShape& input) {
  Chain chain(input);
  chain.flatten();
  for (const std::int64_t width : integers(values, "hidden")) chain.linear(width).relu();
  return chain.linear(input.classes).graph();
}

Model mlp() {
  return {.name = "mlp",
          .title = "MLP",
          .task = "classification",
          .datasets = {"mnist", "fashion-mnist", "synthetic-digits", "cifar10", "synthetic-color-digits",
                       "folder", "csv"},
          .hyperparameters = {sizes_parameter("hidden", {250, 100}, 0, 16,
                                              "outputs of each hidden layer; [] is a linear model")},
          .about = "fully connected layers with ReLU between them",
          .graph = mlp_graph};
}

}  // namespace trainyard::models
