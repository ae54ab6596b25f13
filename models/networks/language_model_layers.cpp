#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "models/networks/dropout.h"
#include "models/networks/layer_kinds.h"
#include "models/networks/layer_parts.h"
#include "models/networks/random_stream.h"

namespace trainyard::networks {

// Both tables are drawn by the rule of the node. The weight is a value for `tied_linear`, too.
Layer token_embedding(const models::Node& row, const Initialisation& start) {
  const std::int64_t outputs = row.sizes.at("outputs");
  InitialWeights weights(row, start);
  const auto table = [&](const char* role, const char* rows) {
    return weights.drawn(role, {row.sizes.at(rows), outputs}, row.initial.value());
  };
  const NamedParameter tokens = table("weight", "vocabulary"), positions = table("positions", "positions");
  auto forward = [rows = rows_of(row, tokens, no_padding), w = tokens.value, p = positions.value,
                  tied = row.makes.size() > 1](const Activations& inputs, const ForwardContext& context) {
    const at::Tensor& windows = inputs.at(0);
    Activations made{rows(windows, context).add(p.slice(0, 0, windows.size(1)))};
    if (tied) made.push_back(w.alias());  // stages send no leaves
    return made;
  };
  return {row.path, row.kind, {tokens, positions}, {}, std::move(forward), row.makes.size() > 1};
}

Layer layer_norm(const models::Node& row, const Initialisation& start) {
  const std::int64_t channels = row.sizes.at("channels");
  const InitialWeights weights(row, start);
  Layer layer{row.path, row.kind, {weights.constant("weight", {channels}, 1)}, {}, {}};
  if (row.sizes.at("bias") != 0) layer.parameters.push_back(weights.constant("bias", {channels}, 0));
  const at::Tensor bias = layer.parameters.size() > 1 ? layer.parameters[1].value : at::Tensor();
  layer.forward = of_one_value([channels, w = layer.parameters[0].value, bias](const at::Tensor& x) {
    return at::layer_norm(x, {channels}, w, bias);
  });
  return layer;
}

namespace {

// Attention step by step, because the kernels of LibTorch draw dropout from one generator for the whole batch.
// q, k, v [batch, heads, length, features]; `own`: these heads of all
at::Tensor attention_with_dropout(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                  const at::Tensor& samples, const DropoutStream& stream,
                                  const models::Cut& own) {
  const at::Tensor scores = at::matmul(q / std::sqrt(static_cast<double>(q.size(-1))), k.transpose(-2, -1));
  const at::Tensor later = at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).triu(1);
  const at::Tensor weights =
      at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
  const at::Tensor factors = attention_dropout_factors(of_whole_size(weights, 1, own), samples, stream);
  return at::matmul(weights * own_part(factors, 1, own), v);
}

}  // namespace

Layer causal_attention(const models::Node& row, const Initialisation&) {
  const std::int64_t all = row.sizes.at("heads");
  models::Cut own{.units = all, .end = all};
  if (row.part) own.begin = row.part->cut.begin, own.end = row.part->cut.end;
  auto forward = [path = row.path, own, heads = own.size(), p = row.dropout](const Activations& inputs,
                                                                             const ForwardContext& context) {
    const at::Tensor& x = inputs.at(0);
    const auto parts =
        x.view({x.size(0), x.size(1), 3, heads, x.size(2) / (3 * heads)}).permute({2, 0, 3, 1, 4}).unbind();
    const DropoutStream stream{stream_seed("dropout", context.seed, path), context.step, p,
                               context.step_on_device};
    const at::Tensor y =
        context.training && p > 0
            ? attention_with_dropout(parts[0], parts[1], parts[2], context.samples, stream, own)
            : at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, /*is_causal=*/true);
    return Activations{y.transpose(1, 2).flatten(2)};
  };
  return {row.path, row.kind, {}, {}, std::move(forward)};
}

Layer tied_linear(const models::Node& row, const Initialisation&) {
  return {row.path, row.kind, {}, {}, [](const Activations& inputs, const ForwardContext&) {
            return Activations{at::linear(inputs.at(0), inputs.at(1))};
          }};
}

}  // namespace trainyard::networks
