#include "models/networks/operator_node.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "base/named_row.h"
#include "models/networks/dropout.h"
#include "models/networks/operator_call.h"
#include "models/networks/random_stream.h"
#include "models/samples/random.h"

namespace trainyard::networks {

namespace {

void run_boxed(const OperatorCall& op, Stack& stack, const ForwardContext&) {
  op.handle.callBoxed(stack);
}

at::Device device_of(const OperatorCall& op, const Stack& stack) {
  for (const at::IValue& value : stack)
    if (value.isTensor() && value.toTensor().defined()) return value.toTensor().device();
  const auto place = op.position("device");
  return place && stack[*place].isDevice() ? stack[*place].toDevice() : at::Device(at::kCPU);
}

// `x` as [batch, …], a view. Each sample has the slices that the rule gives it, in two dimensions: outer and inner.
at::Tensor samples_first(const OperatorCall& op, const at::Tensor& x, std::int64_t batch) {
  const auto [dimension, own] = *op.by_sample;
  const bool fits =
      dimension < x.dim() && batch > 0 && x.size(dimension) % (batch * std::max<std::int64_t>(own, 1)) == 0;
  if (!fits)
    op.refuse("its numbers have sizes " + c10::str(x.sizes()) + ", but the batch has " +
              std::to_string(batch) + " samples");
  const std::int64_t inner = own > 0 ? own : x.size(dimension) / batch;
  return x.unflatten(dimension, {x.size(dimension) / (batch * inner), batch, inner})
      .movedim(dimension + 1, 0);
}

// The reverse.
at::Tensor samples_back(const OperatorCall& op, const at::Tensor& x) {
  const std::int64_t dimension = op.by_sample->dimension;
  return x.movedim(0, dimension + 1).flatten(dimension, dimension + 2);
}

void run_seeded(const OperatorCall& op, Stack& stack, const ForwardContext& context, std::uint64_t seed) {
  const at::Generator& usual = at::globalContext().defaultGenerator(device_of(op, stack));
  if (const auto place = op.position("generator")) {
    at::Generator own = usual.clone();
    own.set_current_seed(seed);
    stack[*place] = own;
    return run_boxed(op, stack, context);
  }
  static std::mutex of_default_generator;  // nobody else may draw between seed and call
  const std::lock_guard lock(of_default_generator);
  {
    at::Generator generator = usual;
    const std::lock_guard own_lock(generator.mutex());
    generator.set_current_seed(seed);
  }
  run_boxed(op, stack, context);
}

// Calls the operator for each sample, with a generator that depends on the sample. Its first argument is a tensor or sizes.
void run_by_sample(const OperatorCall& op, Stack& stack, const ForwardContext& context, std::uint64_t seed) {
  const at::Tensor samples = context.samples.to(at::kCPU, at::kLong).contiguous();
  const std::int64_t batch = samples.numel();
  const bool of_sizes = !stack.front().isTensor();
  const at::Tensor whole = of_sizes ? at::empty(stack.front().toIntVector()) : stack.front().toTensor();
  const at::Tensor parts = samples_first(op, whole, batch);
  std::vector<at::Tensor> drawn;
  for (std::int64_t i = 0; i < batch; ++i) {
    Stack own = stack;
    const at::Tensor part = parts.select(0, i);
    // contiguous, as some operators draw in the order of the memory
    own.front() =
        of_sizes ? at::IValue(part.sizes().vec()) : at::IValue(part.clone(at::MemoryFormat::Contiguous));
    const auto sample = static_cast<std::uint64_t>(samples.const_data_ptr<std::int64_t>()[i]);
    run_seeded(op, own, context, models::mixed_seed({seed, sample}) >> 32);
    drawn.push_back(own.front().toTensor());
  }
  stack.clear();
  at::Tensor result = samples_back(op, at::stack(drawn));
  stack.emplace_back(op.schema().name().ends_with('_') ? whole.copy_(result) : std::move(result));
}

// With generators that depend on seed, step and node, and by a rule on the sample.
void run_random(const OperatorCall& op, Stack& stack, const ForwardContext& context) {
  if (!op.draws(stack)) return run_boxed(op, stack, context);
  if (context.step_on_device.defined())
    throw InternalError(op.name + " draws random numbers, which a CUDA graph would repeat in each step");
  const std::uint64_t seed = models::mixed_seed(
      {stream_seed("random", context.seed, op.path), static_cast<std::uint64_t>(context.step)});
  if (op.by_sample && context.samples.defined()) return run_by_sample(op, stack, context, seed);
  run_seeded(op, stack, context, seed >> 32);
}

// Factors for dropout with probability `p`, 0 … 1, by `draw`: see dropout.h.
at::Tensor factors_for(const OperatorCall& op, const at::Tensor& like, double p,
                       const ForwardContext& context, decltype(dropout_factors)* draw = dropout_factors) {
  const std::int64_t samples = context.samples.defined() ? context.samples.numel() : 0;
  const bool first = !op.by_sample || (op.by_sample->dimension == 0 && like.size(0) == samples);
  if (!first && p > 0 && p < 1 && like.is_floating_point()) {
    const at::Tensor parts = samples_first(op, like, samples);
    return samples_back(
        op, draw(parts, context.samples,
                 {stream_seed("dropout", context.seed, op.path), context.step, p, context.step_on_device}));
  }
  if (like.dim() == 0 || like.size(0) != samples) {
    op.refuse("its input has sizes " + c10::str(like.sizes()) + ", but the batch has " +
                  std::to_string(samples) + " samples",
              "the first dimension of the input of dropout must be the batch");
  }
  if (!(p >= 0 && p <= 1)) op.refuse("its probability is not within 0 and 1");
  if (!like.is_floating_point()) op.refuse("its input is not of floating-point numbers");
  if (p == 1) return at::zeros_like(like);
  return draw(like, context.samples,
              {stream_seed("dropout", context.seed, op.path), context.step, p, context.step_on_device});
}

// dropout, feature_dropout, alpha_dropout, feature_alpha_dropout, and the same in place: (input, p, train).
void run_dropout(const OperatorCall& op, Stack& stack, const ForwardContext& context) {
  const std::string& name = op.schema().name();
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  const double p = stack[1].toDouble();
  const bool off = p == 0 || !stack[2].toBool();
  const at::Tensor x = std::move(stack[0]).toTensor();
  stack.clear();
  if (off || x.numel() == 0) {
    stack.emplace_back(x);
    return;
  }
  at::Tensor factors;
  if (has("feature_")) {
    if (x.dim() < 2) op.refuse("its input has no channels");
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
    std::copy_n(x.sizes().begin(), 2, sizes.begin());
    factors = factors_for(op, at::empty(sizes, x.options()), p, context);
  } else {
    factors = factors_for(op, x, p, context);
  }
  at::Tensor shift;
  if (has("alpha_") && p < 1) {  // Klambauer et al., "Self-normalizing neural networks", 2017
    constexpr double alpha = 1.7580993408473766;
    const double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
    const at::Tensor kept = factors.ne(0).to(x.scalar_type());
    shift = kept.sub(1).mul_(alpha * a).add_(alpha * a * p);
    factors = kept.mul(a);
  }
  at::Tensor result = name.ends_with('_') ? x.mul_(factors) : x.mul(factors);
  if (shift.defined()) result.add_(shift);
  stack.emplace_back(std::move(result));
}

at::Tensor tensor_or_none(const at::IValue& value) {
  return value.isNone() ? at::Tensor() : value.toTensor();
}

// (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa). The last dimensions are
// [positions, features]. The dimension before is that of the heads.
void run_attention(const OperatorCall& op, Stack& stack, const ForwardContext& context) {
  const double p = op.argument(stack, "dropout_p").toDouble();
  if (p == 0) return run_boxed(op, stack, context);
  const at::Tensor query = stack.at(0).toTensor(), mask = tensor_or_none(op.argument(stack, "attn_mask"));
  at::Tensor key = stack.at(1).toTensor(), value = stack.at(2).toTensor();
  const bool causal = op.argument(stack, "is_causal").toBool();
  const at::IValue& given_scale = op.argument(stack, "scale");
  if (query.dim() < 3 || key.dim() < 3 || value.dim() < 3)
    op.refuse("attention with dropout needs a batch, positions and features");
  if (causal && mask.defined()) op.refuse("it has a mask and is causal");
  if (op.argument(stack, "enable_gqa").toBool()) {  // several heads of queries share those of keys
    if (key.size(-3) == 0 || value.size(-3) == 0) op.refuse("its keys have no heads");
    key = key.repeat_interleave(query.size(-3) / key.size(-3), -3);
    value = value.repeat_interleave(query.size(-3) / value.size(-3), -3);
  }
  const double scale =
      given_scale.isNone() ? 1 / std::sqrt(static_cast<double>(query.size(-1))) : given_scale.toDouble();
  constexpr double never = -std::numeric_limits<double>::infinity();
  at::Tensor scores = at::matmul(query * scale, key.transpose(-2, -1));
  at::Tensor blind;  // queries that may see no key: their result is 0
  if (causal) {
    const at::Tensor seen =
        at::ones({query.size(-2), key.size(-2)}, scores.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(seen.logical_not(), never);
  } else if (mask.defined()) {
    scores = mask.scalar_type() == at::kBool ? scores.masked_fill(mask.logical_not(), never) : scores + mask;
    blind = scores.eq(never).all(-1, /*keepdim=*/true);
    scores = scores.masked_fill(blind, 0);
  }
  at::Tensor weights = at::softmax(scores, -1);
  if (blind.defined()) weights = weights.masked_fill(blind, 0);
  weights = weights * factors_for(op, weights, p, context, attention_dropout_factors);
  stack = {at::matmul(weights, value)};
}

bool all_equal(const at::IValue& list, std::int64_t number) {
  const at::List<std::int64_t> numbers = list.toIntList();
  return std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t each) { return each == number; });
}

bool is_channels_last(const at::Tensor& tensor) {
  return tensor.suggest_memory_format() == at::MemoryFormat::ChannelsLast;
}

// Whether a convolution with these arguments computes each pixel by itself, from channels that are neighbours in
// memory. The result has the order "channels last".
bool is_by_pixel(const at::Tensor& x, const at::Tensor& weight, const Stack& stack) {
  if (x.dim() != 4 || weight.dim() != 4 || !x.is_cpu()) return false;
  const bool neighbours = is_channels_last(x) || (x.size(2) * x.size(3) == 1 && is_channels_last(weight));
  return neighbours && weight.size(2) == 1 && weight.size(3) == 1 && weight.size(1) == x.size(1) &&
         all_equal(stack[3], 1) && all_equal(stack[4], 0);
}

// A convolution by pixel is a product of matrices. As such it is faster: oneDNN's convolution copies the weights
// in each call, and their gradients.
// (input, weight, bias, stride, padding, dilation, groups)
void run_convolution(const OperatorCall& op, Stack& stack, const ForwardContext& context) {
  const at::Tensor x = stack[0].toTensor(), weight = stack[1].toTensor();
  if (!is_by_pixel(x, weight, stack)) return run_boxed(op, stack, context);
  const at::Tensor pixels = x.permute({0, 2, 3, 1}).reshape({-1, x.size(1)});
  const at::Tensor result = at::linear(pixels, weight.flatten(1), tensor_or_none(stack[2]));
  stack.clear();
  stack.emplace_back(result.view({x.size(0), x.size(2), x.size(3), weight.size(0)}).permute({0, 3, 1, 2}));
}

// The graph was made on a CPU, where export drops a `contiguous` or a copy of `reshape` that it does not need. On a GPU results
// can have other strides, as those of attention do. Then a view is a copy, as in PyTorch there.
void run_view(const OperatorCall&, Stack& stack, const ForwardContext&) {
  const at::Tensor viewed = stack[0].toTensor().reshape(stack[1].toIntVector());
  stack = {viewed};
}

// (input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
void run_batch_norm(const OperatorCall& op, Stack& stack, const ForwardContext& context) {
  const bool synchronised = context.sum_over_replicas && stack.at(5).toBool();
  if (!synchronised) return run_boxed(op, stack, context);
  at::Tensor result = synchronised_batch_norm(stack.at(0).toTensor(), tensor_or_none(stack.at(1)),
                                              tensor_or_none(stack.at(2)), tensor_or_none(stack.at(3)),
                                              tensor_or_none(stack.at(4)), stack.at(6).toDouble(),
                                              stack.at(7).toDouble(), context);
  stack = {std::move(result)};
}

// The weights of a recurrent layer. oneDNN reads beyond them if their shapes are wrong.
// (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
void check_weights(const OperatorCall& op, Stack& stack, std::int64_t gates) {
  const at::Tensor input = stack.at(0).toTensor();
  const std::vector<at::Tensor> states =
      stack.at(1).isTensor() ? std::vector{stack.at(1).toTensor()} : stack.at(1).toTensorVector();
  const std::vector<at::Tensor> weights = stack.at(2).toTensorVector();
  const bool biases = stack.at(3).toBool(), batch_first = stack.at(8).toBool();
  const std::int64_t layers = stack.at(4).toInt(), directions = stack.at(7).toBool() ? 2 : 1;
  const auto count = static_cast<std::int64_t>(weights.size());
  const bool is_lstm = gates == 4;
  const auto require = [&](bool right, const std::string& what) {
    if (!right) op.refuse(what, "the file is damaged or was made by another program");
  };

  require(input.dim() == 3, "the input of a recurrent layer must have three dimensions");
  require(states.size() == (is_lstm ? 2U : 1U), "it has another number of states than a recurrent layer");
  require(layers > 0 && layers <= count, "it has another number of layers than weights");
  const std::int64_t batch = input.size(batch_first ? 0 : 1), cells = layers * directions;
  const std::int64_t outputs = states.front().dim() == 3 ? states.front().size(2) : -1;
  const std::int64_t hidden = states.back().dim() == 3 ? states.back().size(2) : -1;
  const bool projects = outputs != hidden;
  for (const at::Tensor& state : states)
    require(state.dim() == 3 && state.size(0) == cells && state.size(1) == batch,
            "a state of the recurrent layer has sizes " + c10::str(state.sizes()));
  const std::int64_t of_cell = 2 + (biases ? 2 : 0) + (projects ? 1 : 0);
  require(count == cells * of_cell, "the recurrent layer has " + std::to_string(count) + " weights");

  for (std::int64_t cell = 0; cell < cells; ++cell) {
    const std::int64_t inputs = cell < directions ? input.size(2) : outputs * directions;
    std::vector<std::vector<std::int64_t>> sizes{{gates * hidden, inputs}, {gates * hidden, outputs}};
    if (biases) sizes.insert(sizes.end(), 2, {gates * hidden});
    if (projects) sizes.push_back({outputs, hidden});
    for (std::int64_t i = 0; i < of_cell; ++i) {
      const at::Tensor& weight = weights[static_cast<std::size_t>(cell * of_cell + i)];
      const std::vector<std::int64_t>& right = sizes[static_cast<std::size_t>(i)];
      require(weight.sizes() == right, "a weight of the recurrent layer has sizes " +
                                           c10::str(weight.sizes()) + " instead of " +
                                           c10::str(at::IntArrayRef(right)));
      require(weight.scalar_type() == weights.front().scalar_type(),
              "the weights of the recurrent layer have different types");
    }
  }
}

template <std::int64_t gates>
void run_recurrent(const OperatorCall& op, Stack& stack, const ForwardContext& context) {
  check_weights(op, stack, gates);
  run_random(op, stack, context);
}

struct Special {
  std::string_view kind;
  OperatorCall::Run run;
};

constexpr std::array specials{
    Special{"aten.alpha_dropout.default", run_dropout},
    Special{"aten.alpha_dropout_.default", run_dropout},
    Special{"aten.batch_norm.default", run_batch_norm},
    Special{"aten.conv2d.default", run_convolution},
    Special{"aten.dropout.default", run_dropout},
    Special{"aten.dropout_.default", run_dropout},
    Special{"aten.feature_alpha_dropout.default", run_dropout},
    Special{"aten.feature_dropout.default", run_dropout},
    Special{"aten.feature_dropout_.default", run_dropout},
    Special{"aten.gru.input", run_recurrent<3>},
    Special{"aten.lstm.input", run_recurrent<4>},
    Special{"aten.rnn_relu.input", run_recurrent<1>},
    Special{"aten.rnn_tanh.input", run_recurrent<1>},
    Special{"aten.scaled_dot_product_attention.default", run_attention},
    Special{"aten.view.default", run_view},
};

// Assertions about sizes and types. They held when the network was exported.
constexpr std::array<std::string_view, 4> assertions{
    "aten._assert_scalar.default", "aten._assert_tensor_metadata.default", "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default"};

// --- operators of numbers, as in Python

using Numbers = std::vector<at::Scalar>;

struct NumberOperator {
  std::string_view kind;
  std::size_t operands;
  at::Scalar (*compute)(const Numbers&);
};

bool is_integral(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [](const at::Scalar& number) { return number.isIntegral(/*includeBool=*/true); });
}

void require_fits(bool fits) {
  if (!fits) throw std::range_error("its result does not fit into 64 bits");
}

std::int64_t divisor(const Numbers& n) {
  if (n[1].toLong() == 0) throw std::range_error("it divides by 0");
  require_fits(n[1].toLong() != -1 || n[0].toLong() != std::numeric_limits<std::int64_t>::min());
  return n[1].toLong();
}

at::Scalar rounded_down(const Numbers& n) {
  if (!is_integral(n)) return std::floor(n[0].toDouble() / n[1].toDouble());
  const std::int64_t a = n[0].toLong(), b = divisor(n);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

at::Scalar remainder(const Numbers& n) {  // it has the sign of the divisor
  if (!is_integral(n)) throw std::range_error("only integers have a remainder here");
  const std::int64_t a = n[0].toLong(), b = divisor(n);
  return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}

at::Scalar negative(const Numbers& n) {
  if (!is_integral(n)) return -n[0].toDouble();
  std::int64_t result = 0;
  require_fits(!__builtin_sub_overflow(std::int64_t{0}, n[0].toLong(), &result));
  return result;
}

enum class Arithmetic { add, subtract, multiply };

template <Arithmetic how>
at::Scalar arithmetic(const Numbers& n) {
  if (!is_integral(n)) {
    const double a = n[0].toDouble(), b = n[1].toDouble();
    return how == Arithmetic::add ? a + b : how == Arithmetic::subtract ? a - b : a * b;
  }
  const std::int64_t a = n[0].toLong(), b = n[1].toLong();
  std::int64_t result = 0;
  if constexpr (how == Arithmetic::add) require_fits(!__builtin_add_overflow(a, b, &result));
  if constexpr (how == Arithmetic::subtract) require_fits(!__builtin_sub_overflow(a, b, &result));
  if constexpr (how == Arithmetic::multiply) require_fits(!__builtin_mul_overflow(a, b, &result));
  return result;
}

template <class Compare>
at::Scalar comparison(const Numbers& n) {
  return is_integral(n) ? Compare()(n[0].toLong(), n[1].toLong())
                        : Compare()(n[0].toDouble(), n[1].toDouble());
}

template <class Compare>
at::Scalar chosen(const Numbers& n) {
  return comparison<Compare>(n).toBool() ? n[0] : n[1];
}

constexpr std::array number_operators{
    NumberOperator{"_operator.add", 2, arithmetic<Arithmetic::add>},
    NumberOperator{"_operator.eq", 2, comparison<std::equal_to<>>},
    NumberOperator{"_operator.floordiv", 2, rounded_down},
    NumberOperator{"_operator.ge", 2, comparison<std::greater_equal<>>},
    NumberOperator{"_operator.gt", 2, comparison<std::greater<>>},
    NumberOperator{"_operator.le", 2, comparison<std::less_equal<>>},
    NumberOperator{"_operator.lt", 2, comparison<std::less<>>},
    NumberOperator{"_operator.mod", 2, remainder},
    NumberOperator{"_operator.mul", 2, arithmetic<Arithmetic::multiply>},
    NumberOperator{"_operator.ne", 2, comparison<std::not_equal_to<>>},
    NumberOperator{"_operator.neg", 1, negative},
    NumberOperator{"_operator.sub", 2, arithmetic<Arithmetic::subtract>},
    NumberOperator{"torch.sym_max", 2, chosen<std::greater_equal<>>},
    NumberOperator{"torch.sym_min", 2, chosen<std::less_equal<>>},
};

at::Tensor constant_number(const models::Argument& argument, const std::string& node) {
  if (const auto* value = std::get_if<std::int64_t>(&argument.value)) return number_tensor(*value);
  if (const auto* value = std::get_if<double>(&argument.value)) return number_tensor(*value);
  if (const auto* value = std::get_if<bool>(&argument.value)) return number_tensor(*value);
  throw UserError(node + " cannot be executed: an argument is not a number");
}

Forward number_forward(const models::Node& node) {
  const std::string name = described(node);
  const NumberOperator* op = row_or_null(number_operators, &NumberOperator::kind, node.kind);
  if (op == nullptr) throw UserError(name + " cannot be executed: unsupported scalar operator");
  if (node.arguments.size() != op->operands || node.makes.size() != 1)
    throw UserError(name + " cannot be executed: it has another number of arguments or results");
  Activations constants;
  std::vector<std::size_t> reads;
  for (const models::Argument& argument : node.arguments) {
    const auto* read = std::get_if<models::Argument::Read>(&argument.value);
    if (read != nullptr && read->index >= node.reads.size())
      throw InternalError(name + " has an argument that it does not read");
    constants.push_back(read == nullptr ? constant_number(argument, name) : at::Tensor());
    reads.push_back(read == nullptr ? 0 : read->index);
  }
  return [name, op, constants, reads](const Activations& inputs, const ForwardContext&) -> Activations {
    Numbers numbers;
    for (std::size_t i = 0; i < constants.size(); ++i)
      numbers.push_back((constants[i].defined() ? constants[i] : inputs.at(reads[i])).item());
    try {
      return {number_tensor(op->compute(numbers))};
    } catch (const std::range_error& error) {
      throw UserError(name + " cannot be executed: " + error.what());
    }
  };
}

bool is_of_numbers(const models::Node& node) {
  return node.kind.starts_with("_operator.") || node.kind.starts_with("torch.sym_");
}

}  // namespace

bool is_operator(const models::Node& node) {
  return node.kind.starts_with("aten.") || is_of_numbers(node);
}

Forward operator_forward(const models::Node& node, at::Device device) {
  if (is_of_numbers(node)) return number_forward(node);
  if (std::ranges::find(assertions, node.kind) != assertions.end() && node.makes.empty())
    return [](const Activations&, const ForwardContext&) { return Activations{}; };
  const Special* special = row_or_null(specials, &Special::kind, node.kind);
  const auto run = special == nullptr ? run_random : special->run;
  return [op = std::make_shared<const OperatorCall>(node, device), run](Activations inputs,
                                                                        const ForwardContext& context) {
    return (*op)(std::move(inputs), context, run);
  };
}

at::Tensor number_tensor(const at::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor synchronised_batch_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   const at::Tensor& mean, const at::Tensor& variance, double momentum,
                                   double epsilon, const ForwardContext& context) {
  const std::int64_t channels = x.size(1);
  std::vector<std::int64_t> others{0}, of_channel(static_cast<std::size_t>(x.dim()), 1);
  for (std::int64_t i = 2; i < x.dim(); ++i) others.push_back(i);
  of_channel[1] = channels;
  const auto sum = [&](const at::Tensor& values) { return values.sum(others, false, at::kDouble); };
  const at::Tensor own_count = at::full({1}, x.numel() / channels, x.options().dtype(at::kDouble));
  // the sums of x, x² and 1
  const at::Tensor sums = context.sum_over_replicas(at::cat({sum(x), sum(x.square()), own_count}));
  const at::Tensor count = sums.slice(0, 2 * channels).detach();
  const at::Tensor batch_mean = sums.slice(0, 0, channels) / count;
  const at::Tensor batch_variance =
      (sums.slice(0, channels, 2 * channels) / count - batch_mean.square()).clamp_min(0);
  if (mean.defined() && variance.defined()) {
    const at::NoGradGuard no_grad;
    mean.lerp_(batch_mean.to(mean.dtype()), momentum);
    variance.lerp_((batch_variance * (count / (count - 1))).to(variance.dtype()), momentum);
  }
  at::Tensor scale = (batch_variance + epsilon).rsqrt();
  if (weight.defined()) scale = weight * scale;
  at::Tensor shift = batch_mean * scale;
  shift = bias.defined() ? bias - shift : -shift;
  return x * scale.to(x.dtype()).view(of_channel) + shift.to(x.dtype()).view(of_channel);
}

}  // namespace trainyard::networks
