#include "runner/gradients/sharded_reducer.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>

#include "models/networks/libtorch_private.h"
#include "models/networks/vector_kernels.h"
#include "runner/gradients/sparse_gradient.h"

namespace trainyard::runner {

namespace {

// Values.
std::int64_t unit_of(Division division) {
  constexpr std::int64_t line = 64;
  return division == Division::lines ? line : 1;
}

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

std::int64_t columns_of(const at::Tensor& parameter) {
  const bool matrix = parameter.dim() == 2 && parameter.is_contiguous() && parameter.size(1) > 0;
  return matrix ? parameter.size(1) : 0;
}

// Some rows of a matrix in ascending order, with values [count, columns].
struct Rows {
  const std::int64_t* numbers;
  at::Tensor values;
  at::Tensor keeps_numbers;
  std::int64_t count() const { return values.size(0); }
};

Rows rows_of(const at::Tensor& numbers, const at::Tensor& values) {
  return {numbers.const_data_ptr<std::int64_t>(), values, numbers};
}

Rows rows_of(const at::Tensor& sparse) {
  return rows_of(libtorch::sparse_rows(sparse).contiguous(), libtorch::sparse_values(sparse).contiguous());
}

// The rows that are in `slice`.
Rows within(const Shard& slice, const Rows& rows) {
  const std::int64_t* const end = rows.numbers + rows.count();
  const std::int64_t* const first = std::lower_bound(rows.numbers, end, slice.first_row());
  const std::int64_t* const last = std::lower_bound(first, end, slice.last_row());
  return {first, rows.values.slice(0, first - rows.numbers, last - rows.numbers), rows.keeps_numbers};
}

// A published gradient of a matrix: all of it, or the used rows of a sparse gradient and their indices. A
// sparse gradient contains the rows that the replica's samples used (runner/gradients/sparse_gradient.h).
struct PublishedRows {
  at::Tensor values;   // [rows, columns]
  at::Tensor numbers;  // int64 [1 + rows]: number of rows or `whole_matrix`, then the row indices, ascending
  static constexpr std::int64_t whole_matrix = -1;
};

Rows published_rows(const PublishedRows& published) {
  const at::Tensor numbers = published.numbers.slice(0, 1);
  return rows_of(numbers, published.values.slice(0, 0, *published.numbers.const_data_ptr<std::int64_t>()));
}

bool is_whole(const PublishedRows& published) {
  return *published.numbers.const_data_ptr<std::int64_t>() == PublishedRows::whole_matrix;
}

// The union of the rows of both. A row that is in both is the sum.
template <class Number>
Rows merged(const Rows& a, const Rows& b) {
  const std::int64_t columns = a.values.size(1);
  const at::Tensor numbers = at::empty({a.count() + b.count()}, at::kLong);
  const at::Tensor values = at::empty({a.count() + b.count(), columns}, a.values.options());
  auto* const to_numbers = numbers.mutable_data_ptr<std::int64_t>();
  auto* const to = values.mutable_data_ptr<Number>();
  const auto* const from_a = a.values.const_data_ptr<Number>();
  const auto* const from_b = b.values.const_data_ptr<Number>();
  std::int64_t i = 0, k = 0, n = 0;
  for (; i < a.count() || k < b.count(); ++n) {
    const bool has_a = k == b.count() || (i < a.count() && a.numbers[i] <= b.numbers[k]);
    const bool has_b = i == a.count() || (k < b.count() && b.numbers[k] <= a.numbers[i]);
    to_numbers[n] = has_a ? a.numbers[i] : b.numbers[k];
    Number* const row = to + n * columns;
    std::copy_n(has_a ? from_a + i * columns : from_b + k * columns, columns, row);
    if (has_a && has_b) networks::add_to(row, from_b + k * columns, columns);
    i += has_a ? 1 : 0;
    k += has_b ? 1 : 0;
  }
  return rows_of(numbers, values.slice(0, 0, n));
}

at::Tensor sparse(const Rows& rows, const Shard& slice) {
  const at::Tensor numbers = at::empty({1, rows.count()}, at::kLong);
  std::transform(rows.numbers, rows.numbers + rows.count(), numbers.mutable_data_ptr<std::int64_t>(),
                 [&](std::int64_t row) { return row - slice.first_row(); });
  return libtorch::sparse_tensor(numbers, rows.values, {slice.last_row() - slice.first_row(), slice.columns});
}

at::Tensor sum_of_some_rows(const at::Tensor& gradient, const Shard& slice,
                            const std::vector<PublishedRows>& published, int rank) {
  const auto of_rank = [&](std::size_t r) {
    return within(slice,
                  r == static_cast<std::size_t>(rank) ? rows_of(gradient) : published_rows(published[r]));
  };
  Rows sum = of_rank(0);
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "sum_of_rows", [&] {
    for (std::size_t r = 1; r < published.size(); ++r) sum = merged<scalar_t>(sum, of_rank(r));
  });
  return sparse(sum, slice);
}

// Sum of a shard over all ranks, in the order of the ranks and in the memory of `own`. `published` has one tensor
// per rank. The tensor at `rank` is not read.
at::Tensor sum_in_order(const at::Tensor& own, const std::vector<at::Tensor>& published, int rank) {
  const auto place = static_cast<std::size_t>(rank);
  if (place == 1) own.add_(published[0]);
  if (place > 1) {
    const at::Tensor before = published[0] + published[1];
    for (std::size_t r = 2; r < place; ++r) before.add_(published[r]);
    own.add_(before);
  }
  for (std::size_t r = place + 1; r < published.size(); ++r) own.add_(published[r]);
  return own;
}

// Publishes `gradient`, sparse and coalesced or dense, without the shard `own` of this replica. `own` may be
// empty.
// Returns the number of published values.
std::int64_t publish_rows(const at::Tensor& gradient, const Shard& own, const PublishedRows& to) {
  const bool some = gradient.is_sparse();
  auto* const numbers = to.numbers.mutable_data_ptr<std::int64_t>();
  std::int64_t first = own.first_row(), last = own.last_row();
  at::Tensor values = gradient;
  numbers[0] = PublishedRows::whole_matrix;
  if (some) {
    const Rows rows = rows_of(gradient);
    values = rows.values;
    numbers[0] = rows.count();
    std::copy_n(rows.numbers, rows.count(), numbers + 1);
    first = std::lower_bound(rows.numbers, rows.numbers + rows.count(), first) - rows.numbers;
    last = std::lower_bound(rows.numbers, rows.numbers + rows.count(), last) - rows.numbers;
  }
  const std::int64_t count = values.size(0);
  to.values.slice(0, 0, first).copy_(values.slice(0, 0, first));
  to.values.slice(0, last, count).copy_(values.slice(0, last, count));
  return (first + count - last) * gradient.size(1);
}

// `sum_in_order` for the rows of the shard `slice`: [rows of the shard, columns]. The sum is sparse and
// coalesced if all gradients are sparse, else dense. `gradient` is the one that this replica has published.
at::Tensor sum_of_rows(const at::Tensor& gradient, const Shard& slice,
                       const std::vector<PublishedRows>& published, int rank) {
  const auto is_own = [&](std::size_t r) { return r == static_cast<std::size_t>(rank); };
  bool some = gradient.is_sparse();
  for (std::size_t r = 0; r < published.size(); ++r) some = some && (is_own(r) || !is_whole(published[r]));
  if (some) return sum_of_some_rows(gradient, slice, published, rank);
  const auto of_some = [&](const Rows& rows) { return sparse(within(slice, rows), slice).to_dense(); };
  std::vector<at::Tensor> wholes(published.size());
  for (std::size_t r = 0; r < published.size(); ++r)
    if (!is_own(r))
      wholes[r] =
          is_whole(published[r]) ? slice.of(published[r].values) : of_some(published_rows(published[r]));
  return sum_in_order(gradient.is_sparse() ? of_some(rows_of(gradient)) : slice.of(gradient), wholes, rank);
}

class ShardedReducer final : public BucketedReducer {
 public:
  // `memory` [replicas, numbers of the layout] is shared by all replicas.
  ShardedReducer(const std::vector<networks::NamedParameter>& of, ShardLayout layout, Communicator& replicas,
                 SharedMemoryFeatures& shared, const at::Tensor& memory)
      : BucketedReducer(of, layout.buckets()),
        layout_(std::move(layout)),
        replicas_(replicas),
        shared_(shared),
        memory_(memory),
        peer_shards_(of.size()),
        rows_(of.size()),
        gradients_in_(of.size()) {
    for (std::size_t bucket = 0; bucket < buckets().size(); ++bucket) plan_shards(bucket);
    gradients_.resize(own_.size());
  }

  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  std::size_t parameter_of(std::size_t gradient) const override { return own_[gradient].slice.parameter; }
  bool sharded() const override { return true; }
  HeldTensors held() const override { return {gradients_, {memory_}, replicas_.size()}; }

  std::vector<at::Tensor> whole_gradients() override {
    const at::NoGradGuard no_grad;
    for (std::size_t k = 0; k < own_.size(); ++k)
      own_[k].slice.of(published_by(replicas_.rank(), own_[k].slice.parameter)).copy_(whole(gradients_[k]));
    replicas_.barrier();
    std::vector<at::Tensor> wholes;
    for (const auto& parameter : parameters()) wholes.push_back(at::empty_like(parameter.value.detach()));
    for (int rank = 0; rank < replicas_.size(); ++rank)
      for (const Shard& slice : layout_.slices(rank, replicas_.size()))
        slice.of(wholes[slice.parameter]).copy_(slice.of(published_by(rank, slice.parameter)));
    replicas_.barrier();  // from here on the published gradients may be overwritten
    return wholes;
  }

 private:
  struct OwnShard {
    Shard slice;
    std::vector<at::Tensor> published;  // per rank: its published gradient of the shard
  };
  struct PeerShard {
    Shard slice;
    at::Tensor to;
  };

  at::Tensor published_by(int rank, std::size_t parameter) const {
    return layout_.in(memory_[rank], parameter);
  }

  void plan_shards(std::size_t bucket) {
    first_own_.push_back(own_.size());
    for (int rank = 0; rank < replicas_.size(); ++rank) {
      for (const Shard& slice : layout_.slices(bucket, rank, replicas_.size())) {
        const std::size_t i = slice.parameter;
        if (rank == replicas_.rank()) {
          own_.push_back({slice, {}});
          for (int r = 0; r < replicas_.size(); ++r)
            own_.back().published.push_back(slice.of(published_by(r, i)));
        } else {
          peer_shards_[i].push_back({slice, slice.of(published_by(replicas_.rank(), i))});
        }
      }
    }
    const std::size_t first = buckets()[bucket].front();
    if (layout_.columns(first) > 0) plan_rows(first);
  }

  void plan_rows(std::size_t parameter) {
    const std::int64_t rows = parameters()[parameter].value.size(0);
    const at::Tensor numbers = shared_.allocate_shared(replicas_.size() * (1 + rows), at::kLong);
    for (int rank = 0; rank < replicas_.size(); ++rank)
      rows_[parameter].push_back(
          {published_by(rank, parameter), numbers.slice(0, rank * (1 + rows), (rank + 1) * (1 + rows))});
  }

  void take(std::size_t parameter, const at::Tensor& gradient) override {
    const at::NoGradGuard no_grad;
    gradients_in_[parameter] = densify_if_full(coalesced(gradient));
    if (rows_[parameter].empty()) {
      gradients_in_[parameter] = whole(gradients_in_[parameter]);
      for (const PeerShard& part : peer_shards_[parameter]) {
        part.to.copy_(part.slice.of(gradients_in_[parameter]));
        replicas_.count_sent(part.to.nbytes());
      }
    } else {
      const PublishedRows& to = rows_[parameter][static_cast<std::size_t>(replicas_.rank())];
      const std::int64_t published = publish_rows(gradients_in_[parameter], own_slice_of(parameter), to);
      replicas_.count_sent(static_cast<std::size_t>(published) * gradient.element_size());
    }
  }

  // This replica's shard of a parameter that is alone in its bucket.
  Shard own_slice_of(std::size_t parameter) const {
    for (const OwnShard& own : own_)
      if (own.slice.parameter == parameter) return own.slice;
    return {parameter, 0, 0, layout_.columns(parameter)};
  }

  std::unique_ptr<Communicator::Work> start_reduction(std::size_t bucket) override {
    const std::size_t first = first_own_[bucket];
    const std::size_t last = bucket + 1 < first_own_.size() ? first_own_[bucket + 1] : own_.size();
    return shared_.async_barrier([this, first, last] {
      const at::NoGradGuard no_grad;
      for (std::size_t k = first; k < last; ++k) gradients_[k] = sum_of(own_[k]);
    });
  }

  at::Tensor sum_of(const OwnShard& own) const {
    const at::Tensor& gradient = gradients_in_[own.slice.parameter];
    const std::vector<PublishedRows>& rows = rows_[own.slice.parameter];
    if (!rows.empty()) return sum_of_rows(gradient, own.slice, rows, replicas_.rank());
    return sum_in_order(own.slice.of(gradient), own.published, replicas_.rank());
  }

  ShardLayout layout_;
  Communicator& replicas_;
  SharedMemoryFeatures& shared_;
  at::Tensor memory_;
  std::vector<OwnShard> own_;                        // bucket by bucket
  std::vector<std::size_t> first_own_;               // per bucket: index in `own_`
  std::vector<std::vector<PeerShard>> peer_shards_;  // per parameter
  std::vector<std::vector<PublishedRows>> rows_;  // per parameter that is divided between rows: one per rank
  std::vector<at::Tensor> gradients_in_;          // per parameter: this replica's gradient
  std::vector<at::Tensor> gradients_;             // per element of `own_`
};

}  // namespace

at::Tensor Shard::of(const at::Tensor& whole) const {
  const std::int64_t start = whole.storage_offset() + begin;
  if (columns == 0) return whole.as_strided({end - begin}, {1}, start);
  return whole.as_strided({last_row() - first_row(), columns}, {columns, 1}, start);
}

ShardLayout::ShardLayout(const std::vector<at::Tensor>& parameters, Buckets buckets, Division division)
    : buckets_(std::move(buckets)), division_(division), places_(parameters.size()) {
  for (const auto& bucket : buckets_) {
    for (const std::size_t i : bucket) {
      const at::Tensor& parameter = parameters[i];
      places_[i] = {.sizes = parameter.sizes().vec(),
                    .strides = parameter.strides().vec(),
                    .begin = numbers_,
                    .end = numbers_ + parameter.numel(),
                    .columns = bucket.size() == 1 ? columns_of(parameter) : 0};
      numbers_ = rounded_up(places_[i].end, unit_of(division));
    }
  }
}

at::Tensor ShardLayout::in(const at::Tensor& memory, std::size_t parameter) const {
  const Place& place = places_[parameter];
  return memory.as_strided(place.sizes, place.strides, memory.storage_offset() + place.begin);
}

MemoryRange ShardLayout::range(std::size_t bucket, int rank, int size) const {
  const std::vector<std::size_t>& members = buckets_[bucket];
  const std::int64_t start = places_[members.front()].begin;
  const std::int64_t count = places_[members.back()].end - start;
  const std::int64_t columns = places_[members.front()].columns;
  if (division_ == Division::whole) {
    const bool own = static_cast<int>(members.front()) % size == rank;
    return {start, start + (own ? count : 0)};
  }
  const auto edge = [&](int r) {
    return start + std::min(count, rounded_up(count * r / size, columns > 0 ? columns : unit_of(division_)));
  };
  return {edge(rank), edge(rank + 1)};
}

std::vector<Shard> ShardLayout::slices(std::size_t bucket, int rank, int size) const {
  const MemoryRange own = range(bucket, rank, size);
  std::vector<Shard> slices;
  for (const std::size_t i : buckets_[bucket]) {
    const Place& place = places_[i];
    const std::int64_t begin = std::max(own.begin, place.begin), end = std::min(own.end, place.end);
    if (begin < end) slices.push_back({i, begin - place.begin, end - place.begin, place.columns});
  }
  return slices;
}

std::vector<Shard> ShardLayout::slices(int rank, int size) const {
  std::vector<Shard> all;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    for (const Shard& slice : slices(bucket, rank, size)) all.push_back(slice);
  return all;
}

std::vector<at::Tensor> ShardLayout::wholes_in(const at::Tensor& memory) const {
  std::vector<at::Tensor> wholes;
  for (std::size_t i = 0; i < places_.size(); ++i) wholes.push_back(in(memory, i));
  return wholes;
}

std::vector<at::Tensor> ShardLayout::slices_in(const at::Tensor& memory, int rank, int size) const {
  std::vector<at::Tensor> own;
  for (const Shard& slice : slices(rank, size)) own.push_back(slice.of(in(memory, slice.parameter)));
  return own;
}

std::unique_ptr<Reducer> sharded_reducer(const std::vector<networks::NamedParameter>& parameters,
                                         const ShardLayout& layout, Communicator& replicas) {
  SharedMemoryFeatures* const shared = replicas.shared_memory();
  if (!shared) return nullptr;
  const at::Tensor memory =
      shared->allocate_shared(replicas.size() * layout.numbers(), parameters.front().value.scalar_type());
  return std::make_unique<ShardedReducer>(parameters, layout, replicas, *shared,
                                          memory.view({replicas.size(), layout.numbers()}));
}

}  // namespace trainyard::runner
