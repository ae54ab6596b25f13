#include "runner/gradients/slices.h"

#include <algorithm>
#include <utility>

namespace trainyard::runner {

namespace {

constexpr std::int64_t line = 64;  // numbers: no two replicas write to one line of a cache

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

std::int64_t columns_of(const at::Tensor& parameter) {
  const bool matrix = parameter.dim() == 2 && parameter.is_contiguous() && parameter.size(1) > 0;
  return matrix ? parameter.size(1) : 0;
}

}  // namespace

at::Tensor Slice::of(const at::Tensor& whole) const {
  const std::int64_t start = whole.storage_offset() + begin;
  if (columns == 0) return whole.as_strided({end - begin}, {1}, start);
  return whole.as_strided({last_row() - first_row(), columns}, {columns, 1}, start);
}

SliceLayout::SliceLayout(const std::vector<at::Tensor>& parameters, Buckets buckets)
    : buckets_(std::move(buckets)), places_(parameters.size()) {
  for (const auto& bucket : buckets_) {
    for (const std::size_t i : bucket) {
      const at::Tensor& parameter = parameters[i];
      places_[i] = {.sizes = parameter.sizes().vec(),
                    .strides = parameter.strides().vec(),
                    .begin = numbers_,
                    .end = numbers_ + parameter.numel(),
                    .columns = bucket.size() == 1 ? columns_of(parameter) : 0};
      numbers_ = rounded_up(places_[i].end, line);
    }
  }
}

at::Tensor SliceLayout::in(const at::Tensor& memory, std::size_t parameter) const {
  const Place& place = places_[parameter];
  return memory.as_strided(place.sizes, place.strides, memory.storage_offset() + place.begin);
}

std::vector<Slice> SliceLayout::slices(std::size_t bucket, int rank, int size) const {
  const std::vector<std::size_t>& members = buckets_[bucket];
  const std::int64_t start = places_[members.front()].begin;
  const std::int64_t count = places_[members.back()].end - start;
  const std::int64_t columns = places_[members.front()].columns;
  const auto edge = [&](int r) {
    return start + std::min(count, rounded_up(count * r / size, columns > 0 ? columns : line));
  };
  std::vector<Slice> slices;
  for (const std::size_t i : members) {
    const std::int64_t begin = std::max(edge(rank), places_[i].begin);
    const std::int64_t end = std::min(edge(rank + 1), places_[i].end);
    if (begin < end) slices.push_back({i, begin - places_[i].begin, end - places_[i].begin, columns});
  }
  return slices;
}

std::vector<Slice> SliceLayout::slices(int rank, int size) const {
  std::vector<Slice> all;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    for (const Slice& slice : slices(bucket, rank, size)) all.push_back(slice);
  return all;
}

}  // namespace trainyard::runner
