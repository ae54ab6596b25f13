#include "runner/data/sampler.h"

#include <algorithm>
#include <array>
#include <bit>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/sha256.h"
#include "models/networks/random_stream.h"
#include "models/samples/random.h"

namespace trainyard::runner {

namespace {

std::int64_t round_up(std::int64_t number, std::int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

struct NamedSampling {
  const char* name;
  Sampling sampling;
};

constexpr std::array samplings{NamedSampling{"exact", Sampling::exact},
                               NamedSampling{"distributed", Sampling::distributed}};

constexpr std::int64_t window_batches = 100;

at::Generator order_stream(std::uint64_t seed, std::int64_t epoch) {
  return networks::random_stream("order", seed, std::to_string(epoch));
}

// Sorts each window of `window` samples by key. Samples with equal keys keep their random order.
void sort_windows(std::int64_t* first, std::int64_t count, std::int64_t window, const std::int64_t* keys) {
  for (std::int64_t begin = 0; begin < count; begin += window) {
    std::stable_sort(first + begin, first + std::min(begin + window, count),
                     [&](std::int64_t a, std::int64_t b) { return keys[a] < keys[b]; });
  }
}

}  // namespace

Part part_of(const Part& whole, std::int64_t part, std::int64_t parts) {
  const std::int64_t each = whole.size() / parts;
  const std::int64_t larger = whole.size() % parts;  // number of parts with one more
  const std::int64_t begin = whole.begin + part * each + std::min(part, larger);
  return {begin, begin + each + (part < larger ? 1 : 0)};
}

Sampling find_sampling(std::string_view name) {
  return named_row(samplings, &NamedSampling::name, "sampler", name).sampling;
}

Sampler::Sampler(std::int64_t samples, std::int64_t global_batch, std::int64_t replica, std::int64_t replicas,
                 Sampling sampling)
    : samples_(samples),
      filled_up_(sampling == Sampling::exact ? samples : round_up(samples, replicas)),
      global_batch_(global_batch),
      replica_(replica),
      replicas_(replicas),
      sampling_(sampling) {
  if (sampling == Sampling::distributed && global_batch % replicas != 0) {
    throw UserError("a global batch of " + std::to_string(global_batch) +
                        " samples cannot be divided among " + std::to_string(replicas) +
                        " replicas, as sampler \"distributed\" requires",
                    "set the batch per replica, or use sampler \"exact\"");
  }
}

Part Sampler::global_batch(std::int64_t step) const {
  return {step * global_batch_, std::min((step + 1) * global_batch_, filled_up_)};
}

at::Tensor Sampler::indices(const at::Tensor& order, std::int64_t step) const {
  return own_part(indices_of_all(order, step), step);
}

at::Tensor Sampler::own_part(const at::Tensor& batch, std::int64_t step) const {
  if (replica_ == no_replica) return batch.slice(0, 0, 0);
  if (sampling_ == Sampling::distributed)
    return batch.slice(0, replica_, batch.size(0), replicas_).contiguous();
  const std::int64_t begin = global_batch(step).begin;
  const Part own = part(step);
  return batch.slice(0, own.begin - begin, own.end - begin);
}

at::Tensor Sampler::indices_of_all(const at::Tensor& order, std::int64_t step) const {
  const Part all = global_batch(step);
  if (sampling_ == Sampling::exact) return order.slice(0, all.begin, all.end);
  return order.index_select(0, at::arange(all.begin, all.end, at::kLong).remainder_(samples_));
}

std::string Sampler::batches_hash(const at::Tensor& order) const {
  static_assert(std::endian::native == std::endian::little);
  const auto bytes_of = [](const void* data, std::size_t size) {
    return std::string_view(static_cast<const char*>(data), size);
  };
  Sha256 ordered, of_steps;
  for (std::int64_t step = 0; step < steps(); ++step) {
    const at::Tensor batch = indices_of_all(order, step).contiguous();
    ordered.update(bytes_of(batch.const_data_ptr(), batch.nbytes()));
    std::uint64_t sum = 0;
    for (const std::int64_t index : at::ArrayRef(batch.const_data_ptr<std::int64_t>(), batch.numel()))
      sum += models::SplitMix64(static_cast<std::uint64_t>(index) * models::SplitMix64::gamma).next();
    of_steps.update(bytes_of(&sum, sizeof sum));
  }
  return ordered.hex() + " steps:" + of_steps.hex();
}

LocalBatch Sampler::local_batch(const Dataset& data, const at::Tensor& order, std::int64_t step) const {
  const at::Tensor batch = indices_of_all(order, step);
  const at::Tensor own = own_part(batch, step);
  const std::int64_t divisor =
      sampling_ == Sampling::exact ? data.weight(batch) : replicas_ * data.weight(own);
  return {own, divisor, batch};
}

at::Tensor epoch_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  return at::randperm(samples, order_stream(seed, epoch), at::kLong);
}

at::Tensor epoch_order(const at::Tensor& keys, std::int64_t global_batch, std::uint64_t seed,
                       std::int64_t epoch) {
  at::Generator stream = order_stream(seed, epoch);
  at::Tensor order = at::randperm(keys.size(0), stream, at::kLong);
  const std::int64_t batches = keys.size(0) / global_batch;  // full batches
  if (batches == 0) return order;
  const at::Tensor whole = order.slice(0, 0, batches * global_batch);
  sort_windows(whole.data_ptr<std::int64_t>(), whole.size(0), window_batches * global_batch,
               keys.const_data_ptr<std::int64_t>());
  const at::Tensor by_batch = whole.view({batches, global_batch});
  const at::Tensor rows = at::randperm(batches, stream, at::kLong);
  const at::Tensor columns =
      at::rand({batches, global_batch}, stream, at::kDouble).argsort(/*stable=*/true, 1, false);
  whole.copy_(by_batch.index_select(0, rows).gather(1, columns).flatten());
  return order;
}

at::Tensor epoch_order(const Dataset& data, std::int64_t global_batch, std::uint64_t seed, std::int64_t epoch,
                       std::int64_t steps) {
  const at::Tensor keys = data.length_keys();
  const auto pass = [&](std::int64_t number) {
    return keys.defined() ? epoch_order(keys, global_batch, seed, number)
                          : epoch_order(data.size(), seed, number);
  };
  if (steps == 0) return pass(epoch);
  const std::int64_t end = epoch * steps * global_batch;
  std::vector<at::Tensor> parts;
  for (std::int64_t at = end - steps * global_batch; at < end;) {
    const std::int64_t begin = at % data.size(), count = std::min(data.size() - begin, end - at);
    parts.push_back(pass(1 + at / data.size()).slice(0, begin, begin + count));
    at += count;
  }
  return at::cat(parts);
}

std::int64_t epoch_samples(const Dataset& data, std::int64_t global_batch, std::int64_t steps) {
  return steps == 0 ? data.size() : steps * global_batch;
}

at::Tensor evaluation_order(const Dataset& data) {
  const at::Tensor keys = data.length_keys();
  if (!keys.defined()) return at::arange(data.size(), at::kLong);
  return keys.argsort(/*stable=*/true, 0, /*descending=*/false);
}

}  // namespace trainyard::runner
