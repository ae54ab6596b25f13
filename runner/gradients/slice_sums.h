// Sums over replicas that share memory: each shows the others what they need of its gradients, and adds up
// what it is shown of its own slices, in the order of the ranks.
//
// Of a matrix replicas may have only the rows that their samples took (runner/gradients/row_gradient.h): then
// the rows are written and read, not the matrix. Where one of them has a whole gradient, the sum is whole.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/gradients/slices.h"

namespace trainyard::runner {

// Σ over ranks of a slice, in the memory of `own`; `shown` by each rank, of which that at `rank` is not read.
at::Tensor sum_in_order(const at::Tensor& own, const std::vector<at::Tensor>& shown, int rank);

// What a replica shows of a matrix: the numbers at their places; or some rows one behind the other, and
// which.
struct ShownRows {
  at::Tensor values;   // [rows, columns]
  at::Tensor numbers;  // int64 [1 + rows]: how many rows, or `whole_matrix`; then these, ascending
  static constexpr std::int64_t whole_matrix = -1;
};

// Writes what the others need of `gradient`, sparse with each row once or whole: all but the slice `own`,
// which may be empty.
void show_rows(const at::Tensor& gradient, const Slice& own, const ShownRows& to);

// `sum_in_order` of the rows of `slice`: [rows of the slice, columns], sparse with each row once where all
// are. `gradient` is this replica's, which `show_rows` was given.
at::Tensor sum_of_rows(const at::Tensor& gradient, const Slice& slice, const std::vector<ShownRows>& shown,
                       int rank);

}  // namespace trainyard::runner
