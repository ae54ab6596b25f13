#include "models/networks/layer_parts.h"

#include <utility>

#include <ATen/ATen.h>

namespace trainyard::networks {

using PartKind = models::NodePart::Kind;

std::optional<models::Cut> cut_of(const models::Node& node, const std::string& role,
                                  std::int64_t dimensions) {
  if (!node.part) return std::nullopt;
  models::Cut cut = node.part->cut;
  cut.dimension = dimensions - 1;
  if (role != "weight" || dimensions == 1) return is_part_of_sum(node) ? std::nullopt : std::optional(cut);
  const bool inputs_first = node.kind == "conv_transpose2d" || node.kind.ends_with("_embedding");
  cut.dimension = inputs_first != is_part_of_sum(node) ? 1 : 0;
  return cut;
}

at::Tensor view_of_part(const at::Tensor& whole, const models::Cut& cut) {
  return whole.unflatten(cut.dimension, {cut.outer, cut.units, cut.inner})
      .narrow(cut.dimension + 1, cut.begin, cut.end - cut.begin);
}

at::Tensor part_of(const at::Tensor& whole, const models::Cut& cut) {
  return view_of_part(whole, cut).flatten(cut.dimension, cut.dimension + 2);
}

std::vector<std::int64_t> whole_sizes(const at::Tensor& part, const models::Cut& cut) {
  std::vector<std::int64_t> sizes = part.sizes().vec();
  sizes.at(static_cast<std::size_t>(cut.dimension)) = cut.outer * cut.units * cut.inner;
  return sizes;
}

std::int64_t dimension_of_parts(const at::Tensor& value) {
  constexpr std::int64_t of_images = 4;
  return value.dim() == of_images ? 1 : value.dim() - 1;
}

at::Tensor of_whole_size(const at::Tensor& value, std::int64_t dimension, const models::Cut& cut) {
  std::vector<std::int64_t> sizes = value.sizes().vec();
  sizes.at(static_cast<std::size_t>(dimension)) = cut.units * cut.inner;
  return value.narrow(dimension, 0, 1).expand(sizes);
}

at::Tensor own_part(const at::Tensor& whole, std::int64_t dimension, const models::Cut& cut) {
  return whole.narrow(dimension, cut.begin * cut.inner, (cut.end - cut.begin) * cut.inner);
}

bool is_part_of_sum(const models::Node& node) {
  return node.part && node.part->kind == PartKind::rows;
}

namespace {

// Zeros in place of the other parts.
at::Tensor padded(const at::Tensor& value, const models::Cut& cut) {
  std::vector<std::int64_t> padding(
      static_cast<std::size_t>(2 * (value.dim() - 1 - dimension_of_parts(value))), 0);
  padding.insert(padding.end(), {cut.begin * cut.inner, (cut.units - cut.end) * cut.inner});
  return at::constant_pad_nd(value, padding);
}

at::Tensor with_bias(const at::Tensor& value, const at::Tensor& bias) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(value.dim()), 1);
  sizes.at(static_cast<std::size_t>(dimension_of_parts(value))) = bias.size(0);
  return value + bias.view(sizes);
}

}  // namespace

Layer with_exchanges(Layer layer, const models::Node& node) {
  const bool adds_itself = is_part_of_sum(node) && node.kind.ends_with("_embedding");  // see `rows_of`
  if (node.part->kind == PartKind::passes || adds_itself) return layer;
  const at::Tensor bias =
      is_part_of_sum(node) && layer.parameters.size() > 1 ? layer.parameters[1].value : at::Tensor();
  layer.forward = [layer = std::move(layer.forward), part = *node.part, bias](Activations values,
                                                                              const ForwardContext& context) {
    const bool reads_whole = part.kind != PartKind::rows;
    if (reads_whole && values.front().requires_grad()) values.front() = context.copy_to_parts(values.front());
    Activations made = layer(std::move(values), context);
    at::Tensor& value = made.front();
    if (part.kind == PartKind::gathered) value = padded(value, part.cut);
    if (part.kind != PartKind::columns) value = context.sum_over_parts(value);
    if (bias.defined()) value = with_bias(value, bias);
    return made;
  };
  return layer;
}

std::function<at::Tensor(const at::Tensor&, const ForwardContext&)> rows_of(const models::Node& node,
                                                                            const NamedParameter& weight,
                                                                            std::int64_t padding) {
  if (!is_part_of_sum(node))
    return [w = weight.value, padding](const at::Tensor& tokens, const ForwardContext&) {
      return at::embedding(w, tokens, padding);
    };
  const std::int64_t first = node.part->cut.begin;
  return [w = weight.value, first, padding = first == 0 ? padding : no_padding](
             const at::Tensor& tokens, const ForwardContext& context) {
    const at::Tensor own = tokens - first;
    const at::Tensor here = own.ge(0).logical_and(own.lt(w.size(0)));
    return context.sum_over_parts(at::embedding(w, own * here, padding) * here.unsqueeze(-1));
  };
}

}  // namespace trainyard::networks
