#include "runner/data/epoch_order.h"

#include <algorithm>
#include <string>

#include <ATen/ATen.h>

#include "models/networks/random_stream.h"

namespace trainyard::runner {

namespace {

constexpr std::int64_t window_batches = 100;

at::Generator order_stream(std::uint64_t seed, std::int64_t epoch) {
  return networks::random_stream("order", seed, std::to_string(epoch));
}

// Sorts each run of `window` numbers by key; those with equal keys stay in their random order.
void sort_windows(std::int64_t* first, std::int64_t count, std::int64_t window, const std::int64_t* keys) {
  for (std::int64_t begin = 0; begin < count; begin += window) {
    std::stable_sort(first + begin, first + std::min(begin + window, count),
                     [&](std::int64_t a, std::int64_t b) { return keys[a] < keys[b]; });
  }
}

}  // namespace

at::Tensor epoch_order(std::int64_t samples, std::uint64_t seed, std::int64_t epoch) {
  return at::randperm(samples, order_stream(seed, epoch), at::kLong);
}

at::Tensor epoch_order(const at::Tensor& keys, std::int64_t global_batch, std::uint64_t seed,
                       std::int64_t epoch) {
  at::Generator stream = order_stream(seed, epoch);
  at::Tensor order = at::randperm(keys.size(0), stream, at::kLong);
  const std::int64_t batches = keys.size(0) / global_batch;  // whole ones
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

at::Tensor epoch_order(const SplitData& data, std::int64_t global_batch, std::uint64_t seed,
                       std::int64_t epoch) {
  const at::Tensor keys = data.length_keys();
  if (!keys.defined()) return epoch_order(data.size(), seed, epoch);
  return epoch_order(keys, global_batch, seed, epoch);
}

at::Tensor evaluation_order(const SplitData& data) {
  const at::Tensor keys = data.length_keys();
  if (!keys.defined()) return at::arange(data.size(), at::kLong);
  return keys.argsort(/*stable=*/true, 0, /*descending=*/false);
}

}  // namespace trainyard::runner
