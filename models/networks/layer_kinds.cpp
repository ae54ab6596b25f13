#include "models/networks/layer_kinds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "base/named_row.h"
#include "models/networks/layer_kernels.h"
#include "models/networks/layer_parts.h"
#include "models/networks/libtorch_private.h"
#include "models/networks/operator_node.h"
#include "models/networks/random_stream.h"
#include "models/samples/tokenizer.h"

namespace trainyard::networks {

namespace {

// Whether a layer may overwrite its input: no other layer reads it. Autograd does not allow that for a leaf.
bool may_overwrite(const at::Tensor& x) {
  return has_single_reader(x) && !x.is_leaf();
}

// A weight by the rule of its node. Without one it is uniform, as in PyTorch.
NamedParameter weight_of(InitialWeights& weights, const models::Node& row, at::IntArrayRef sizes,
                         at::MemoryFormat format) {
  return row.initial ? weights.drawn("weight", sizes, *row.initial, format)
                     : weights.uniform("weight", sizes, fan_in_bound(sizes), format);
}

NamedParameter bias_of(InitialWeights& weights, const models::Node& row, at::IntArrayRef weight_sizes) {
  const at::DimVector sizes{row.sizes.at("outputs")};
  return row.initial ? weights.constant("bias", sizes, 0)
                     : weights.uniform("bias", sizes, fan_in_bound(weight_sizes));
}

// Undefined if there is none, or if it is added to a sum over parts.
at::Tensor bias_of(const Layer& layer, const models::Node& row) {
  return layer.parameters.size() > 1 && !is_part_of_sum(row) ? layer.parameters[1].value : at::Tensor();
}

// A layer with its weight as first parameter and its bias, if it has one, as second. `sizes` is the shape of
// the weight.
Layer with_weight(const models::Node& row, const Initialisation& start, at::IntArrayRef sizes,
                  at::MemoryFormat format) {
  InitialWeights weights(row, start);
  Layer layer{row.path, row.kind, {weight_of(weights, row, sizes, format)}, {}, {}};
  if (row.sizes.at("bias") != 0) layer.parameters.push_back(bias_of(weights, row, sizes));
  return layer;
}

// Batch normalisation: Ioffe, Szegedy, "Batch normalization", ICML 2015, algorithm 1, with the momentum and
// the running variance (n − 1) of PyTorch.
constexpr double momentum = 0.1;
constexpr double epsilon = 1e-5;

// Normal, as in PyTorch. The row of padding is 0 and stays 0, because its gradient is always 0.
NamedParameter embedding_weight(const models::Node& row, const Initialisation& start) {
  return InitialWeights(row, start)
      .drawn("weight", {row.sizes.at("vocabulary"), row.sizes.at("outputs")},
             {.kind = models::InitialRule::Kind::normal, .value = 1, .zero_row = models::pad_token});
}

// Removing the padding before the rows are read is faster than ignoring it there.
at::Tensor mean_of_words(const at::Tensor& weight, const at::Tensor& tokens) {
  const at::Tensor words = tokens.ne(models::pad_token);
  const at::Tensor lengths = words.sum(1);
  const at::Tensor starts = lengths.cumsum(0) - lengths;
  return mean_of_rows(weight, tokens.masked_select(words), starts);
}

// LSTM layers with the parameters and the gate order (input, forget, cell, output) of PyTorch: Hochreiter,
// Schmidhuber, "Long short-term memory", 1997, with forget gates.
std::vector<NamedParameter> lstm_weights(const models::Node& row, const Initialisation& start) {
  const std::int64_t inputs = row.sizes.at("inputs"), outputs = row.sizes.at("outputs");
  const double bound = 1 / std::sqrt(static_cast<double>(outputs));
  InitialWeights weights(row, start);
  std::vector<NamedParameter> all;
  all.push_back(weights.uniform("weight_ih_l0", {4 * outputs, inputs}, bound));
  all.push_back(weights.uniform("weight_hh_l0", {4 * outputs, outputs}, bound));
  all.push_back(weights.uniform("bias_ih_l0", {4 * outputs}, bound));
  all.push_back(weights.uniform("bias_hh_l0", {4 * outputs}, bound));
  return all;
}

// On x86, oneDNN needs AVX-512 for LSTM layers in bfloat16, and throws without it.
bool has_bfloat16_layers() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
#else
  return true;
#endif
}

// Keeps LSTM layers in float32 if autocast asks for a precision that LibTorch does not support on this CPU.
// float32 is always supported, bfloat16 on some CPUs, float16 never.
class SupportedOn {
 public:
  explicit SupportedOn(const at::Tensor& x) {
    const auto dtype = x.is_cpu() ? libtorch::cpu_autocast() : std::nullopt;
    if (dtype && (*dtype == at::kHalf || !has_bfloat16_layers())) no_autocast_.emplace();
  }
  at::Tensor wide(const at::Tensor& x) const { return no_autocast_ ? x.to(at::kFloat) : x; }

 private:
  std::optional<libtorch::WithoutCpuAutocast> no_autocast_;
};

struct Encoded {
  at::Tensor outputs;  // [batch, length, outputs], 0 after the end of a sentence; undefined if not needed
  at::Tensor h, c;     // [batch, outputs]: the state after the last token of each sentence
};

// σ(−10⁴) and its derivative are 0 in every precision.
constexpr double closed = -1e4;

// Weights of additional inputs: [4 · outputs, additional inputs]. The first input closes the input gate. The
// others are 0 and align the rows in memory.
at::Tensor closing_weight(const models::Node& row, const Initialisation& start) {
  constexpr std::int64_t aligned = 8;
  const std::int64_t inputs = row.sizes.at("inputs"), outputs = row.sizes.at("outputs");
  at::Tensor weight = at::zeros({4 * outputs, aligned - inputs % aligned}, start.options());
  weight.slice(0, 0, outputs).select(1, 0).fill_(closed);
  return weight;
}

// `weights` with the weights of additional inputs. All are in one piece of memory, as cuDNN requires.
std::vector<at::Tensor> widened(const std::vector<at::Tensor>& weights, const at::Tensor& more) {
  const at::Tensor wide = at::cat({weights[0], more}, 1);
  const auto parts =
      at::cat({wide.flatten(), weights[1].flatten(), weights[2], weights[3]})
          .split_with_sizes({wide.numel(), weights[1].numel(), weights[2].numel(), weights[3].numel()});
  return {parts[0].view(wide.sizes()), parts[1].view(weights[1].sizes()), parts[2], parts[3]};
}

// Encode sentences without reading their lengths on the host, which would need a host–device sync.
// - Each sentence is moved to the end of its row, so that its last token is the last of the row.
// - On the padding before it the input gate is closed. The state stays exactly 0 (c = f · 0 + 0 · g, h = o ·
//   tanh 0), and no gate has a gradient, because each has a factor i, c or tanh c.
// - The results are those of packed sentences. `wide` are weights with the additional inputs.
Encoded encode_without_sync(const at::Tensor& x, const at::Tensor& lengths,
                            const std::vector<at::Tensor>& wide, bool outputs_wanted) {
  const std::int64_t batch = x.size(0), length = x.size(1), outputs = wide[1].size(1);
  const std::int64_t more = wide[0].size(1) - x.size(2);
  const at::Tensor sentences = at::arange(batch, lengths.options()),
                   times = at::arange(length, lengths.options());
  const at::Tensor tokens = lengths.clamp_min(1);
  // per time and sentence: the index of the token in `x`, and whether it is padding
  const at::Tensor from =
      times.unsqueeze(1).add(tokens).remainder_(length).add_(sentences * length);  // [length, batch]
  const at::Tensor padding = times.unsqueeze(1).lt(length - tokens).unsqueeze(2).to(x.scalar_type());
  const at::Tensor moved = x.flatten(0, 1).index_select(0, from.flatten()).view({length, batch, x.size(2)});
  const at::Tensor input = at::cat({moved, at::constant_pad_nd(padding, {0, more - 1})}, 2);
  const at::Tensor zeros = at::zeros({1, batch, outputs}, x.options());
  const auto [y, h, c] = at::lstm(input, {zeros, zeros}, wide, true, 1, 0, true, false, false);
  Encoded encoded{{}, h.squeeze(0), c.squeeze(0)};
  if (outputs_wanted) {
    const at::Tensor back = times.sub(tokens.unsqueeze(1))
                                .remainder_(length)
                                .mul_(batch)
                                .add_(sentences.unsqueeze(1));  // [batch, length]
    encoded.outputs = y.flatten(0, 1).index_select(0, back.flatten()).view({batch, length, outputs});
  }
  return encoded;
}

// Encode sentences in groups of similar length, so that little padding is computed. The groups are large
// enough for fast matrix products.
Encoded encode_in_groups(const at::Tensor& input, const at::Tensor& lengths,
                         const std::vector<at::Tensor>& wide, bool outputs_wanted) {
  constexpr std::int64_t largest_group = 32;
  const SupportedOn support(input);
  const at::Tensor x = support.wide(input);
  const auto [sorted, order] = lengths.clamp_min(1).sort(/*stable=*/true, 0, /*descending=*/false);
  std::vector<at::Tensor> outputs, h, c;
  for (std::int64_t begin = 0; begin < x.size(0); begin += largest_group) {
    const std::int64_t end = std::min(begin + largest_group, x.size(0));
    const auto longest = sorted[end - 1].item<std::int64_t>();
    const Encoded group =
        encode_without_sync(x.index_select(0, order.slice(0, begin, end)).slice(1, 0, longest),
                            sorted.slice(0, begin, end), wide, outputs_wanted);
    h.push_back(group.h);
    c.push_back(group.c);
    if (outputs_wanted) outputs.push_back(at::constant_pad_nd(group.outputs, {0, 0, 0, x.size(1) - longest}));
  }
  const at::Tensor back = order.argsort();
  const auto in_order = [&](const std::vector<at::Tensor>& groups) {
    return at::cat(groups).index_select(0, back);
  };
  return {outputs_wanted ? in_order(outputs) : at::Tensor(), in_order(h), in_order(c)};
}

// If weights are not in one piece of memory, cuDNN copies them in every step.
void lay_out_for_cudnn(const models::Node& row, const std::vector<at::Tensor>& weights) {
  if (!at::cudnn_is_acceptable(weights.front())) return;
  const at::NoGradGuard no_grad;
  libtorch::flatten_lstm_weights(weights, row.sizes.at("inputs"), row.sizes.at("outputs"));
}

Layer add(const models::Node& row, const Initialisation&) {
  return {row.path, row.kind, {}, {}, [](Activations values, const ForwardContext&) {
            at::Tensor x = std::move(values.at(0));
            return Activations{may_overwrite(x) ? x.add_(values.at(1)) : x.add(values.at(1))};
          }};
}

Layer linear(const models::Node& row, const Initialisation& start) {
  Layer layer = with_weight(row, start, {row.sizes.at("outputs"), row.sizes.at("inputs")},
                            at::MemoryFormat::Contiguous);
  layer.forward = of_one_value([w = layer.parameters[0].value, b = bias_of(layer, row)](const at::Tensor& x) {
    return at::linear(x, w, b);
  });
  return layer;
}

Layer conv2d(const models::Node& row, const Initialisation& start) {
  const std::int64_t kernel = row.sizes.at("kernel"), groups = row.sizes.at("groups");
  Layer layer =
      with_weight(row, start, {row.sizes.at("outputs"), row.sizes.at("inputs") / groups, kernel, kernel},
                  at::MemoryFormat::ChannelsLast);
  layer.forward =
      of_one_value([weight = layer.parameters[0].value, bias = bias_of(layer, row),
                    stride = row.sizes.at("stride"), padding = row.sizes.at("padding"),
                    groups = groups > 1 ? layer.parameters[0].value.size(0) : 1](const at::Tensor& x) {
        return at::conv2d(x, weight, bias, stride, padding, /*dilation=*/1, groups);
      });
  return layer;
}

// PyTorch computes fan_in of a transposed convolution as the product of all sizes but the first, too,
// although that is not its number of inputs.
Layer conv_transpose2d(const models::Node& row, const Initialisation& start) {
  const std::int64_t kernel = row.sizes.at("kernel");
  Layer layer = with_weight(row, start, {row.sizes.at("inputs"), row.sizes.at("outputs"), kernel, kernel},
                            at::MemoryFormat::ChannelsLast);
  const TransposedConvolution how{
      row.sizes.at("stride"),
      row.sizes.at("padding"),
      {row.sizes.at("output_padding_height"), row.sizes.at("output_padding_width")}};
  const at::Tensor& weight = layer.parameters[0].value;
  const at::Tensor bias = is_part_of_sum(row)
                              ? at::zeros({weight.size(1)}, weight.options().requires_grad(false))
                              : bias_of(layer, row);
  layer.forward = of_one_value(
      [weight, bias, how](const at::Tensor& x) { return transposed_convolution(x, weight, bias, how); });
  return layer;
}

Layer batch_norm2d(const models::Node& row, const Initialisation& start) {
  const std::int64_t channels = row.sizes.at("channels");
  InitialWeights weights(row, start);
  const NamedParameter weight = weights.constant("weight", {channels}, 1);
  const NamedParameter bias = weights.constant("bias", {channels}, 0);
  const auto own = weight.value.sizes();
  const NamedParameter mean{row.path + ".running_mean", at::zeros(own, start.options()), {}, weight.cut};
  const NamedParameter variance{row.path + ".running_var", at::ones(own, start.options()), {}, weight.cut};
  return {row.path,
          row.kind,
          {weight, bias},
          {mean, variance},
          [w = weight.value, b = bias.value, m = mean.value, v = variance.value](
              const Activations& inputs, const ForwardContext& context) {
            const at::Tensor& x = inputs.front();
            const bool synchronised = context.training && context.sum_over_replicas;
            return Activations{
                synchronised ? synchronised_batch_norm(x, w, b, m, v, momentum, epsilon, context)
                             : at::batch_norm(x, w, b, m, v, context.training, momentum, epsilon, true)};
          }};
}

Layer mean_embedding(const models::Node& row, const Initialisation& start) {
  const NamedParameter weight = embedding_weight(row, start);
  return {row.path, row.kind, {weight}, {}, of_one_value([w = weight.value](const at::Tensor& tokens) {
            return tokens.is_cpu() ? mean_of_words(w, tokens) : mean_without_sync(w, tokens);
          })};
}

Layer source_embedding(const models::Node& row, const Initialisation& start) {
  const NamedParameter weight = embedding_weight(row, start);
  return {row.path,
          row.kind,
          {weight},
          {},
          [rows = rows_of(row, weight, models::pad_token)](const Activations& inputs,
                                                           const ForwardContext& context) {
            const at::Tensor& source = inputs.at(0);
            return Activations{rows(source, context), source.ne(models::pad_token).sum(1)};
          }};
}

Layer target_embedding(const models::Node& row, const Initialisation& start) {
  const NamedParameter weight = embedding_weight(row, start);
  return {row.path,
          row.kind,
          {weight},
          {},
          [rows = rows_of(row, weight, models::pad_token)](const Activations& inputs,
                                                           const ForwardContext& context) {
            return Activations{rows(inputs.at(0), context)};
          }};
}

Layer encoder_lstm(const models::Node& row, const Initialisation& start) {
  auto parameters = lstm_weights(row, start);
  auto forward = [weights = values_of(parameters), closing = closing_weight(row, start),
                  last = row.sizes.at("last") != 0](const Activations& inputs,
                                                    const ForwardContext& context) {
    // a replayed step must not sync, on any device
    const bool may_sync = inputs.at(0).is_cpu() && !context.step_on_device.defined();
    const Encoded encoded = (may_sync ? encode_in_groups : encode_without_sync)(
        inputs.at(0), inputs.at(1), widened(weights, closing), !last);
    return last ? Activations{encoded.h, encoded.c} : Activations{encoded.outputs, encoded.h, encoded.c};
  };
  return {row.path, row.kind, std::move(parameters), {}, std::move(forward)};
}

Layer decoder_lstm(const models::Node& row, const Initialisation& start) {
  auto parameters = lstm_weights(row, start);
  lay_out_for_cudnn(row, values_of(parameters));
  auto forward = [weights = values_of(parameters)](const Activations& inputs, const ForwardContext&) {
    const SupportedOn support(inputs.at(0));
    const at::Tensor x = support.wide(inputs.at(0));
    const at::Tensor h = support.wide(inputs.at(1)).unsqueeze(0), c = support.wide(inputs.at(2)).unsqueeze(0);
    return Activations{
        std::get<0>(at::lstm(x, {h, c}, weights, true, 1, 0, true, false, /*batch_first=*/true))};
  };
  return {row.path, row.kind, std::move(parameters), {}, std::move(forward)};
}

// The kind of a layer without parameters.
template <class Function>
auto plain(Function function) {
  return [function](const models::Node& row, const Initialisation&) -> Layer {
    return {row.path, row.kind, {}, {}, of_one_value(function)};
  };
}

struct Kind {
  std::string_view name;
  std::function<Layer(const models::Node&, const Initialisation&)> make;
};

const std::array kinds{
    Kind{"add", add},
    Kind{"batch_norm2d", batch_norm2d},
    Kind{"causal_attention", causal_attention},
    Kind{"conv2d", conv2d},
    Kind{"conv_transpose2d", conv_transpose2d},
    Kind{"decoder_lstm", decoder_lstm},
    Kind{"dropout", dropout},
    Kind{"encoder_lstm", encoder_lstm},
    Kind{"flatten", plain([](const at::Tensor& x) { return x.flatten(1); })},
    Kind{"gelu", plain([](const at::Tensor& x) { return at::gelu(x); })},
    Kind{"image_mean", plain([](const at::Tensor& x) {
           return x.mean({2, 3});
         })},
    Kind{"layer_norm", layer_norm},
    Kind{"linear", linear},
    Kind{"max_pool2d", plain([](const at::Tensor& x) { return at::max_pool2d(x, 2); })},
    Kind{"mean_embedding", mean_embedding},
    Kind{"relu", plain([](at::Tensor x) { return may_overwrite(x) ? at::relu_(x) : at::relu(x); })},
    Kind{"relu6", plain([](at::Tensor x) {
           return may_overwrite(x) ? at::hardtanh_(x, 0, 6) : at::hardtanh(x, 0, 6);
         })},
    Kind{"sigmoid", plain([](const at::Tensor& x) { return at::sigmoid(x); })},
    Kind{"source_embedding", source_embedding},
    Kind{"target_embedding", target_embedding},
    Kind{"tied_linear", tied_linear},
    Kind{"token_embedding", token_embedding},
};

}  // namespace

at::Tensor mean_without_sync(const at::Tensor& weight, const at::Tensor& tokens) {
  constexpr std::int64_t mean = 1;
  const at::Tensor starts = at::arange(0, tokens.numel(), tokens.size(1), tokens.options());
  return std::get<0>(at::embedding_bag(weight, tokens.flatten(), starts, /*scale_grad_by_freq=*/false, mean,
                                       /*sparse=*/false, /*per_sample_weights=*/{},
                                       /*include_last_offset=*/false, models::pad_token));
}

Layer make_layer(const models::Node& node, const Initialisation& start) {
  if (is_operator(node)) return {node.path, node.kind, {}, {}, operator_forward(node, start.device)};
  const Kind* kind = row_or_null(kinds, &Kind::name, node.kind);
  if (kind == nullptr) throw InternalError("there is no layer of kind " + node.kind);
  Layer layer = kind->make(node, start);
  return node.part ? with_exchanges(std::move(layer), node) : layer;
}

}  // namespace trainyard::networks
