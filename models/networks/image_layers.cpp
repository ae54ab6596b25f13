#include <utility>

#include <ATen/ATen.h>

#include "models/networks/initial_weights.h"
#include "models/networks/layer_kinds.h"
#include "models/networks/transposed_convolution.h"

namespace trainyard::networks {

namespace {

// A layer with its weight and, where the row has one, its bias, as first and second parameter. `sizes` are
// the weight's.
Layer convolution(const models::Layer& row, const Initialisation& start, at::IntArrayRef sizes) {
  InitialWeights weights(row.path, start);
  Layer layer{row.path, row.kind, {}, {}, {}};
  const double bound = fan_in_bound(sizes);
  layer.parameters.push_back(weights.uniform("weight", sizes, bound, at::MemoryFormat::ChannelsLast));
  if (row.sizes.at("bias") != 0) {
    layer.parameters.push_back(weights.uniform("bias", {row.sizes.at("outputs")}, bound));
  }
  return layer;
}

at::Tensor bias_of(const Layer& layer) {
  return layer.parameters.size() > 1 ? layer.parameters[1].value : at::Tensor();
}

}  // namespace

Layer conv2d(const models::Layer& row, const Initialisation& start) {
  const std::int64_t kernel = row.sizes.at("kernel");
  Layer layer = convolution(row, start, {row.sizes.at("outputs"), row.sizes.at("inputs"), kernel, kernel});
  layer.forward = on_first([weight = layer.parameters[0].value, bias = bias_of(layer),
                            stride = row.sizes.at("stride"), padding = row.sizes.at("padding")](
                               const at::Tensor& x) { return at::conv2d(x, weight, bias, stride, padding); });
  return layer;
}

// PyTorch's fan_in of a transposed convolution is the product of all sizes but the first, too, although that
// is not the number of inputs.
Layer conv_transpose2d(const models::Layer& row, const Initialisation& start) {
  const std::int64_t kernel = row.sizes.at("kernel");
  Layer layer = convolution(row, start, {row.sizes.at("inputs"), row.sizes.at("outputs"), kernel, kernel});
  const TransposedConvolution how{
      row.sizes.at("stride"),
      row.sizes.at("padding"),
      {row.sizes.at("output_padding_height"), row.sizes.at("output_padding_width")}};
  layer.forward = on_first([weight = layer.parameters[0].value, bias = bias_of(layer), how](
                               const at::Tensor& x) { return transposed_convolution(x, weight, bias, how); });
  return layer;
}

Layer max_pool2d(const models::Layer& row, const Initialisation&) {
  return {row.path, row.kind, {}, {}, on_first([](const at::Tensor& x) { return at::max_pool2d(x, 2); })};
}

}  // namespace trainyard::networks
