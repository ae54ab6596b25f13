// LSTM layers with PyTorch's parameters and gate order (input, forget, cell, output): Hochreiter,
// Schmidhuber, «Long short-term memory», 1997, with forget gates.
#include <cmath>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "models/networks/initial_weights.h"
#include "models/networks/layer_kinds.h"

namespace trainyard::networks {

namespace {

std::vector<NamedParameter> lstm_weights(const models::Layer& row, const Initialisation& start) {
  const std::int64_t inputs = row.sizes.at("inputs"), outputs = row.sizes.at("outputs");
  const double bound = 1 / std::sqrt(static_cast<double>(outputs));
  InitialWeights weights(row.path, start);
  std::vector<NamedParameter> all;
  all.push_back(weights.uniform("weight_ih_l0", {4 * outputs, inputs}, bound));
  all.push_back(weights.uniform("weight_hh_l0", {4 * outputs, outputs}, bound));
  all.push_back(weights.uniform("bias_ih_l0", {4 * outputs}, bound));
  all.push_back(weights.uniform("bias_hh_l0", {4 * outputs}, bound));
  return all;
}

std::vector<at::Tensor> values_of(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> values;
  for (const NamedParameter& parameter : parameters) values.push_back(parameter.value);
  return values;
}

// On a CPU LibTorch has LSTM layers in float32 and bfloat16 only: under autocast to float16 they stay
// float32.
class SupportedOn {
 public:
  explicit SupportedOn(const at::Tensor& x)
      : widens_(x.is_cpu() && at::autocast::is_autocast_enabled(at::kCPU) &&
                at::autocast::get_autocast_dtype(at::kCPU) == at::kHalf) {
    if (widens_) no_autocast_.emplace(c10::DispatchKey::AutocastCPU);
  }
  at::Tensor wide(const at::Tensor& x) const { return widens_ ? x.to(at::kFloat) : x; }

 private:
  bool widens_;
  std::optional<c10::impl::ExcludeDispatchKeyGuard> no_autocast_;  // while this lives
};

struct Encoded {
  at::Tensor outputs;  // [batch, length, outputs], 0 after a sentence's end; undefined where not wanted
  at::Tensor h, c;     // [batch, outputs] after a sentence's last token
};

// Sentences are packed, the longest first, so that padding is neither computed nor seen.
Encoded encode(const at::Tensor& input, const at::Tensor& lengths, const std::vector<at::Tensor>& weights,
               bool outputs_wanted) {
  const SupportedOn support(input);
  const at::Tensor x = support.wide(input);
  const at::Tensor on_cpu = lengths.to(at::kCPU).clamp_min(1);
  const at::Tensor sorted = std::get<1>(on_cpu.sort(/*stable=*/true, 0, /*descending=*/true));
  const at::Tensor order = sorted.to(x.device()), back = order.argsort();
  const auto [data, sizes] = at::_pack_padded_sequence(x.index_select(0, order),
                                                       on_cpu.index_select(0, sorted), /*batch_first=*/true);
  const at::Tensor zeros = at::zeros({1, x.size(0), weights[1].size(1)}, x.options());
  const auto [y, h, c] = at::lstm(data, sizes, {zeros, zeros}, weights, true, 1, 0, true, false);
  Encoded encoded{{}, h.squeeze(0).index_select(0, back), c.squeeze(0).index_select(0, back)};
  if (outputs_wanted) {
    encoded.outputs = std::get<0>(at::_pad_packed_sequence(y, sizes, /*batch_first=*/true, 0, x.size(1)))
                          .index_select(0, back);
  }
  return encoded;
}

}  // namespace

Layer encoder_lstm(const models::Layer& row, const Initialisation& start) {
  auto parameters = lstm_weights(row, start);
  auto forward = [weights = values_of(parameters), last = row.sizes.at("last") != 0](
                     const Activations& inputs, const ForwardContext&) {
    const Encoded encoded = encode(inputs.at(0), inputs.at(1), weights, !last);
    Activations outputs(inputs.begin() + (last ? 2 : 0), inputs.end());
    if (!last) outputs.front() = encoded.outputs;
    outputs.insert(outputs.end(), {encoded.h, encoded.c});
    return outputs;
  };
  return {row.path, row.kind, std::move(parameters), {}, std::move(forward)};
}

Layer decoder_lstm(const models::Layer& row, const Initialisation& start) {
  auto parameters = lstm_weights(row, start);
  auto forward = [weights = values_of(parameters)](const Activations& inputs, const ForwardContext&) {
    const SupportedOn support(inputs.at(0));
    const at::Tensor x = support.wide(inputs.at(0));
    const at::Tensor h = support.wide(inputs.at(1)).unsqueeze(0), c = support.wide(inputs.at(2)).unsqueeze(0);
    Activations outputs(inputs.begin() + 2, inputs.end());
    outputs.front() =
        std::get<0>(at::lstm(x, {h, c}, weights, true, 1, 0, true, false, /*batch_first=*/true));
    return outputs;
  };
  return {row.path, row.kind, std::move(parameters), {}, std::move(forward)};
}

}  // namespace trainyard::networks
