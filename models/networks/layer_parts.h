// What a rank has and exchanges of a layer that is split over ranks. `models/tensor_split.h` decides how layers are split.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/networks/network.h"

namespace trainyard::networks {

// The cut of a parameter of a node; `dimensions` is the number of its dimensions. Empty if the parameter is whole: in a
// split by rows, only the weight is cut.
std::optional<models::Cut> cut_of(const models::Node& node, const std::string& role, std::int64_t dimensions);

// The numbers of the cut in `whole`, as a view: [before, outer, end − begin, inner, after].
at::Tensor view_of_part(const at::Tensor& whole, const models::Cut& cut);
// The same as a tensor with as many dimensions as `whole`.
at::Tensor part_of(const at::Tensor& whole, const models::Cut& cut);
std::vector<std::int64_t> whole_sizes(const at::Tensor& part, const models::Cut& cut);

// The dimension of a value that is split: [batch, channels, height, width], [batch, …, features].
std::int64_t dimension_of_parts(const at::Tensor& value);
// `value` expanded to the size that it has without a split. Its numbers have no meaning.
at::Tensor of_whole_size(const at::Tensor& value, std::int64_t dimension, const models::Cut& cut);
at::Tensor own_part(const at::Tensor& whole, std::int64_t dimension, const models::Cut& cut);

// Whether the layer makes a part of a sum, to which a bias is added once.
bool is_part_of_sum(const models::Node& node);

// The layer with its exchanges of values: copies what it reads to all parts, gathers or adds up what it makes.
Layer with_exchanges(Layer layer, const models::Node& node);

inline constexpr std::int64_t no_padding = -1;

// The rows of `weight` [vocabulary, columns] for int64 tokens: [tokens…, columns]. If each part has some of the rows, the
// rows of all parts are added up. The row `padding` gets no gradient.
std::function<at::Tensor(const at::Tensor& tokens, const ForwardContext&)> rows_of(
    const models::Node& node, const NamedParameter& weight, std::int64_t padding);

}  // namespace trainyard::networks
