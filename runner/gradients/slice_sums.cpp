#include "runner/gradients/slice_sums.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include "models/networks/vector_kernels.h"

namespace trainyard::runner {

namespace {

// Some rows of a matrix, in order: their values [count, columns], one behind the other.
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
  return rows_of(sparse._indices().contiguous(), sparse._values().contiguous());
}

// Those that `slice` has.
Rows within(const Slice& slice, const Rows& rows) {
  const std::int64_t* const end = rows.numbers + rows.count();
  const std::int64_t* const first = std::lower_bound(rows.numbers, end, slice.first_row());
  const std::int64_t* const last = std::lower_bound(first, end, slice.last_row());
  return {first, rows.values.slice(0, first - rows.numbers, last - rows.numbers), rows.keeps_numbers};
}

Rows shown_rows(const ShownRows& shown) {
  const at::Tensor numbers = shown.numbers.slice(0, 1);
  return rows_of(numbers, shown.values.slice(0, 0, *shown.numbers.const_data_ptr<std::int64_t>()));
}

bool is_whole(const ShownRows& shown) {
  return *shown.numbers.const_data_ptr<std::int64_t>() == ShownRows::whole_matrix;
}

// The rows of both; of one that is in both, the sum.
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

at::Tensor sparse(const Rows& rows, const Slice& slice) {
  const at::Tensor numbers = at::empty({1, rows.count()}, at::kLong);
  std::transform(rows.numbers, rows.numbers + rows.count(), numbers.mutable_data_ptr<std::int64_t>(),
                 [&](std::int64_t row) { return row - slice.first_row(); });
  return at::_sparse_coo_tensor_unsafe(numbers, rows.values,
                                       {slice.last_row() - slice.first_row(), slice.columns},
                                       rows.values.options().layout(at::kSparse))
      ._coalesced_(true);
}

at::Tensor sum_of_some_rows(const at::Tensor& gradient, const Slice& slice,
                            const std::vector<ShownRows>& shown, int rank) {
  const auto of_rank = [&](std::size_t r) {
    return within(slice, r == static_cast<std::size_t>(rank) ? rows_of(gradient) : shown_rows(shown[r]));
  };
  Rows sum = of_rank(0);
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "sum_of_rows", [&] {
    for (std::size_t r = 1; r < shown.size(); ++r) sum = merged<scalar_t>(sum, of_rank(r));
  });
  return sparse(sum, slice);
}

}  // namespace

at::Tensor sum_in_order(const at::Tensor& own, const std::vector<at::Tensor>& shown, int rank) {
  const auto place = static_cast<std::size_t>(rank);
  if (place == 1) own.add_(shown[0]);
  if (place > 1) {
    const at::Tensor before = shown[0] + shown[1];
    for (std::size_t r = 2; r < place; ++r) before.add_(shown[r]);
    own.add_(before);
  }
  for (std::size_t r = place + 1; r < shown.size(); ++r) own.add_(shown[r]);
  return own;
}

void show_rows(const at::Tensor& gradient, const Slice& own, const ShownRows& to) {
  const bool some = gradient.is_sparse();
  auto* const numbers = to.numbers.mutable_data_ptr<std::int64_t>();
  std::int64_t first = own.first_row(), last = own.last_row();
  at::Tensor values = gradient;
  numbers[0] = ShownRows::whole_matrix;
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
}

at::Tensor sum_of_rows(const at::Tensor& gradient, const Slice& slice, const std::vector<ShownRows>& shown,
                       int rank) {
  const auto is_own = [&](std::size_t r) { return r == static_cast<std::size_t>(rank); };
  bool some = gradient.is_sparse();
  for (std::size_t r = 0; r < shown.size(); ++r) some = some && (is_own(r) || !is_whole(shown[r]));
  if (some) return sum_of_some_rows(gradient, slice, shown, rank);
  const auto of_some = [&](const Rows& rows) { return sparse(within(slice, rows), slice).to_dense(); };
  std::vector<at::Tensor> wholes(shown.size());
  for (std::size_t r = 0; r < shown.size(); ++r)
    if (!is_own(r))
      wholes[r] = is_whole(shown[r]) ? slice.of(shown[r].values) : of_some(shown_rows(shown[r]));
  return sum_in_order(gradient.is_sparse() ? of_some(rows_of(gradient)) : slice.of(gradient), wholes, rank);
}

}  // namespace trainyard::runner
