// MobileNetV2: Sandler, Howard, Zhu, Zhmoginov, Chen, "MobileNetV2: inverted residuals and linear bottlenecks",
// CVPR 2018, table 2. Rounding, dropout and first weights are those of torchvision.
#include <algorithm>
#include <array>
#include <cmath>

#include "models/chain.h"

namespace trainyard::models {

namespace {

// Inverted residuals with equal outputs. Only the first one has the stride.
struct Group {
  std::int64_t expansion, outputs, repeats, stride;
};
constexpr std::array<Group, 7> groups{{{1, 16, 1, 1},
                                       {6, 24, 2, 2},
                                       {6, 32, 3, 2},
                                       {6, 64, 4, 2},
                                       {6, 96, 3, 1},
                                       {6, 160, 3, 2},
                                       {6, 320, 1, 1}}};

// A multiple of 8, at least 90 % of `channels` · `factor`.
std::int64_t scaled(std::int64_t channels, double factor) {
  const double wanted = static_cast<double>(channels) * factor;
  const std::int64_t nearest = std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * wanted ? nearest + 8 : nearest;
}

void add_convolution(Chain& chain, std::int64_t outputs, Kernel kernel) {
  kernel.padding = kernel.size / 2;
  kernel.bias = false;
  const double fan_out = static_cast<double>(outputs * kernel.size * kernel.size);
  chain.convolution(outputs, kernel).normal(std::sqrt(2 / fan_out)).batch_normalisation();
}

void add_inverted_residual(Chain& chain, std::int64_t expansion, std::int64_t outputs, std::int64_t stride) {
  const Chain::Skip input = chain.skip();
  const std::int64_t inputs = chain.shape().channels, hidden = inputs * expansion;
  if (expansion > 1) {
    add_convolution(chain, hidden, {.size = 1});
    chain.relu6();
  }
  add_convolution(chain, hidden, {.size = 3, .stride = stride, .groups = hidden});
  chain.relu6();
  add_convolution(chain, outputs, {.size = 1});
  if (stride == 1 && inputs == outputs) chain.add_skip(input);
}

Graph mobilenet_v2_graph(const Hyperparameters& values, const InputShape& input) {
  const double width = number(values, "width");
  const bool small = text(values, "stem") == "small";
  Chain chain(input);
  add_convolution(chain, scaled(32, width), {.size = 3, .stride = small ? 1 : 2});
  chain.relu6();
  for (const Group& group : groups) {
    const std::int64_t first = small && group.outputs == 24 ? 1 : group.stride;
    for (std::int64_t i = 0; i < group.repeats; ++i)
      add_inverted_residual(chain, group.expansion, scaled(group.outputs, width), i == 0 ? first : 1);
  }
  add_convolution(chain, scaled(1280, std::max(1.0, width)), {.size = 1});
  chain.relu6().image_mean().dropout(number(values, "dropout"));
  return chain.linear(input.classes).normal(0.01).graph();
}

Parameter width_parameter() {
  Parameter parameter = dropout_parameter(1, "factor of all channels, which are rounded to multiples of 8");
  parameter.name = "width";
  parameter.minimum = Bound{0, false};
  parameter.maximum = Bound{16};
  return parameter;
}

}  // namespace

Model mobilenet_v2() {
  return {.name = "mobilenet-v2",
          .title = "MobileNetV2",
          .task = "classification",
          .datasets = {"cifar10", "synthetic-color-digits", "folder"},
          .hyperparameters = {width_parameter(),
                              choice_parameter(
                                  "stem", {"small", "imagenet"},
                                  "small: the first convolution and the 24 channels have stride 1 for images "
                                  "of 32x32; imagenet: stride 2, as published"),
                              dropout_parameter(0.2, "probability; applied before the linear layer")},
          .about = "17 inverted residuals with depthwise convolutions and ReLU6",
          .graph = mobilenet_v2_graph};
}

}  // namespace trainyard::models
