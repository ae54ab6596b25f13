#include "models/networks/dropout.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/error.h"
#include "models/networks/layer_kinds.h"
#include "models/networks/layer_parts.h"
#include "models/networks/random_stream.h"
#include "models/samples/random.h"

namespace trainyard::networks {

namespace {

// Each number of SplitMix64 decides two values: first its low 32 bits, then its high 32 bits.
template <class Number>
void fill(Number* factors, std::int64_t count, std::uint64_t seed, std::uint32_t threshold, Number kept) {
  models::SplitMix64 numbers(seed);
  std::int64_t i = 0;
  for (; i + 1 < count; i += 2) {
    const std::uint64_t bits = numbers.next();
    factors[i] = static_cast<std::uint32_t>(bits) < threshold ? Number{0} : kept;
    factors[i + 1] = static_cast<std::uint32_t>(bits >> 32) < threshold ? Number{0} : kept;
  }
  if (i < count) factors[i] = static_cast<std::uint32_t>(numbers.next()) < threshold ? Number{0} : kept;
}

template <class Number>
at::Tensor factors_of(const at::Tensor& like, const at::Tensor& samples, const DropoutStream& stream) {
  at::Tensor factors = at::empty(like.sizes(), at::CppTypeToScalarType<Number>::value);
  const auto threshold = static_cast<std::uint32_t>(std::ldexp(stream.probability, 32));  // below 2^32
  const auto kept = static_cast<Number>(1 / (1 - stream.probability));
  const std::int64_t batch = like.size(0), count = batch == 0 ? 0 : like.numel() / batch;
  const std::int64_t* sample = samples.const_data_ptr<std::int64_t>();
  auto* data = factors.mutable_data_ptr<Number>();
  at::parallel_for(0, batch, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t seed = models::mixed_seed(
          {stream.seed, static_cast<std::uint64_t>(stream.step), static_cast<std::uint64_t>(sample[i])});
      fill(data + i * count, count, seed, threshold, kept);
    }
  });
  return factors;
}

// Logical right shift of int64. Together with wrap-around it computes SplitMix64 as with uint64.
at::Tensor shifted(const at::Tensor& bits, int right) {
  return bits.bitwise_right_shift(right).bitwise_and_((std::int64_t{1} << (64 - right)) - 1);
}

std::int64_t wrapped(std::uint64_t number) {
  return static_cast<std::int64_t>(number);
}

at::Tensor mixed(const at::Tensor& state) {
  const at::Tensor once =
      state.bitwise_xor(shifted(state, 30)).mul_(wrapped(models::SplitMix64::first_factor));
  const at::Tensor twice =
      once.bitwise_xor(shifted(once, 27)).mul_(wrapped(models::SplitMix64::second_factor));
  return twice.bitwise_xor(shifted(twice, 31));
}

// models::mixed_seed({seed, step, sample}) for each sample.
at::Tensor seeds_of(const at::Tensor& samples, const DropoutStream& stream) {
  const auto gamma = wrapped(models::SplitMix64::gamma);
  if (!stream.step_on_device.defined()) {
    const std::uint64_t seed = models::mixed_seed({stream.seed, static_cast<std::uint64_t>(stream.step)});
    return mixed(samples.bitwise_xor(wrapped(seed)).add_(gamma));
  }
  const auto seed = wrapped(models::mixed_seed({stream.seed}));
  return mixed(samples.bitwise_xor(mixed(stream.step_on_device.bitwise_xor(seed).add_(gamma))).add_(gamma));
}

void check(const at::Tensor& like, const at::Tensor& samples) {
  if (samples.defined() && samples.numel() == like.size(0)) return;
  throw InternalError("dropout needs the number of each sample");
}

}  // namespace

at::Tensor dropout_factors_by_tensors(const at::Tensor& like, const at::Tensor& samples,
                                      const DropoutStream& stream) {
  check(like, samples);
  const at::Tensor seeds = seeds_of(samples.to(like.device(), /*non_blocking=*/true), stream);
  const std::int64_t batch = like.size(0), count = batch == 0 ? 0 : like.numel() / batch;
  const at::Tensor drawn =
      at::arange(1, (count + 1) / 2 + 1, seeds.options()).mul_(wrapped(models::SplitMix64::gamma));
  const at::Tensor bits = mixed(seeds.unsqueeze(1).add(drawn));
  const at::Tensor places =
      at::stack({bits.bitwise_and(0xffffffff), shifted(bits, 32)}, 2).flatten(1).slice(1, 0, count);
  const auto threshold = static_cast<std::int64_t>(std::ldexp(stream.probability, 32));
  const auto computed = like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return places.ge(threshold)
      .to(computed)
      .mul_(1 / (1 - stream.probability))
      .to(like.scalar_type())
      .view(like.sizes());
}

at::Tensor dropout_factors(const at::Tensor& like, const at::Tensor& samples, const DropoutStream& stream) {
  if (!like.is_cpu() || stream.step_on_device.defined())
    return dropout_factors_by_tensors(like, samples, stream);
  check(like, samples);
  const at::Tensor numbers = samples.to(at::kCPU, at::kLong).contiguous();
  const at::Tensor factors = like.scalar_type() == at::kDouble ? factors_of<double>(like, numbers, stream)
                                                               : factors_of<float>(like, numbers, stream);
  return factors.to(like.scalar_type());
}

at::Tensor attention_dropout_factors(const at::Tensor& like, const at::Tensor& samples,
                                     const DropoutStream& stream) {
  check(like, samples);
  constexpr std::int64_t most_queries = std::int64_t{1} << 20;
  const std::int64_t batch = like.size(0), queries = like.size(-2), keys = like.size(-1);
  if (queries >= most_queries) throw InternalError("attention with dropout has too many queries");
  const std::int64_t heads = like.numel() / std::max<std::int64_t>(batch * queries * keys, 1);
  const at::Tensor at_device = samples.to(like.device(), at::kLong, /*non_blocking=*/true);
  const at::Tensor numbers =
      at_device.view({batch, 1}).mul(most_queries).add(at::arange(queries, at_device.options())).flatten();
  return dropout_factors(at::empty({batch * queries, keys, heads}, like.options()), numbers, stream)
      .view({batch, queries, keys, heads})
      .permute({0, 3, 1, 2})
      .reshape(like.sizes());
}

Layer dropout(const models::Node& row, const Initialisation&) {
  return {row.path,
          row.kind,
          {},
          {},
          [path = row.path, p = row.dropout, part = row.part](const Activations& inputs,
                                                              const ForwardContext& context) {
            if (!context.training || p == 0) return inputs;
            const at::Tensor& x = inputs.front();
            const DropoutStream stream{stream_seed("dropout", context.seed, path), context.step, p,
                                       context.step_on_device};
            if (!part) return Activations{x * dropout_factors(x, context.samples, stream)};
            const std::int64_t dimension = dimension_of_parts(x);
            const at::Tensor factors =
                dropout_factors(of_whole_size(x, dimension, part->cut), context.samples, stream);
            return Activations{x * own_part(factors, dimension, part->cut)};
          }};
}

}  // namespace trainyard::networks
