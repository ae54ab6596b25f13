#include <ATen/ATen.h>

#include "models/networks/initial_weights.h"
#include "models/networks/layer_kinds.h"
#include "models/networks/mean_of_rows.h"
#include "models/samples/vocabulary.h"

namespace trainyard::networks {

namespace {

// Normal, as PyTorch's; the row of padding is zero and stays so, because it gets no gradient.
NamedParameter embedding_weight(const models::Layer& row, const Initialisation& start) {
  NamedParameter weight =
      InitialWeights(row.path, start).normal("weight", {row.sizes.at("vocabulary"), row.sizes.at("outputs")});
  weight.value.detach()[models::pad_token].zero_();
  return weight;
}

// Padding is left out before the look-up, which is faster than passing over it there.
at::Tensor mean_of_words(const at::Tensor& weight, const at::Tensor& tokens) {
  const at::Tensor words = tokens.ne(models::pad_token);
  const at::Tensor lengths = words.sum(1);
  const at::Tensor starts = lengths.cumsum(0) - lengths;
  return mean_of_rows(weight, tokens.masked_select(words), starts);
}

at::Tensor look_up(const at::Tensor& weight, const at::Tensor& tokens) {
  return at::embedding(weight, tokens, models::pad_token);
}

}  // namespace

at::Tensor mean_without_looking(const at::Tensor& weight, const at::Tensor& tokens) {
  constexpr std::int64_t mean = 1;
  const at::Tensor starts = at::arange(0, tokens.numel(), tokens.size(1), tokens.options());
  return std::get<0>(at::embedding_bag(weight, tokens.flatten(), starts, /*scale_grad_by_freq=*/false, mean,
                                       /*sparse=*/false, /*per_sample_weights=*/{},
                                       /*include_last_offset=*/false, models::pad_token));
}

Layer mean_embedding(const models::Layer& row, const Initialisation& start) {
  const NamedParameter weight = embedding_weight(row, start);
  return {row.path, row.kind, {weight}, {}, on_first([w = weight.value](const at::Tensor& tokens) {
            return tokens.is_cpu() ? mean_of_words(w, tokens) : mean_without_looking(w, tokens);
          })};
}

Layer source_embedding(const models::Layer& row, const Initialisation& start) {
  const NamedParameter weight = embedding_weight(row, start);
  return {
      row.path, row.kind, {weight}, {}, [w = weight.value](const Activations& inputs, const ForwardContext&) {
        const at::Tensor& source = inputs.at(0);
        return Activations{look_up(w, source), source.ne(models::pad_token).sum(1), inputs.at(1)};
      }};
}

Layer target_embedding(const models::Layer& row, const Initialisation& start) {
  const NamedParameter weight = embedding_weight(row, start);
  return {row.path, row.kind, {weight}, {}, on_first([w = weight.value](const at::Tensor& tokens) {
            return look_up(w, tokens);
          })};
}

}  // namespace trainyard::networks
