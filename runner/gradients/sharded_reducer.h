// Sharded gradients: how parameters are divided among replicas, and the reducer that sums the shards.
//
// The reducer of replicas that share memory: each sums the gradients of its own slices, and those only. A
// gradient is written once for the others, without the part that this replica sums itself, and read once; an
// all-reduce also writes the sums back to all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/gradients/reducer.h"

namespace trainyard::runner {

// How replicas that share memory share out the work on a model's parameters: each of them sums the gradients
// of its slices, and updates these. The parameters lie in one memory, a bucket
// (runner/gradients/reducer.h) behind the other, and every bucket is cut into as many slices as
// there are replicas: so each has as much to do as the others whenever gradients arrive.

// Part of a parameter: its numbers from `begin` to `end`, as they lie in memory.
struct Shard {
  std::size_t parameter;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t columns = 0;  // of a matrix that is cut between its rows; else 0

  std::int64_t first_row() const { return begin / columns; }
  std::int64_t last_row() const { return end / columns; }  // the one behind it
  // The slice of `whole`, which is laid out like the parameter: [rows, columns] of a matrix, else [numbers].
  at::Tensor of(const at::Tensor& whole) const;
};

class ShardLayout {
 public:
  // Of `parameters` without holes, all of one type, in `buckets`. A matrix alone in its bucket is cut between
  // rows.
  ShardLayout(const std::vector<at::Tensor>& parameters, Buckets buckets);

  std::size_t parameters() const { return places_.size(); }
  const Buckets& buckets() const { return buckets_; }
  std::int64_t numbers() const { return numbers_; }  // in memory, gaps between parameters among them
  // Columns of a parameter that is cut between rows; else 0.
  std::int64_t columns(std::size_t parameter) const { return places_[parameter].columns; }

  // A parameter in `memory` [numbers()], with its sizes and strides.
  at::Tensor in(const at::Tensor& memory, std::size_t parameter) const;

  // What replica `rank` of `size` has of a bucket; may be nothing.
  std::vector<Shard> slices(std::size_t bucket, int rank, int size) const;
  std::vector<Shard> slices(int rank, int size) const;  // of all buckets, one after the other

 private:
  struct Place {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t columns = 0;
  };

  Buckets buckets_;
  std::vector<Place> places_;  // of each parameter
  std::int64_t numbers_ = 0;
};

// Null if the replicas share no memory; collective. `gradients` are those of this replica's slices of
// `layout`. All replicas must pass a barrier between `finish` and the next step's backward, as those of a
// sharded optimizer do after their update. `replicas` must outlive the reducer.
std::unique_ptr<Reducer> sharded_reducer(const std::vector<networks::NamedParameter>& parameters,
                                         const ShardLayout& layout, Communicator& replicas);

// Sums over replicas that share memory: each shows the others what they need of its gradients, and adds up
// what it is shown of its own slices, in the order of the ranks.
//
// A replica may have only the rows of a matrix that its samples took (runner/gradients/sparse_gradient.h).
// Then the rows are written and read, not the matrix. If one replica has a whole gradient, the sum is whole.

// Σ over ranks of a slice, in the memory of `own`; `shown` by each rank, of which that at `rank` is not read.
at::Tensor sum_in_order(const at::Tensor& own, const std::vector<at::Tensor>& shown, int rank);

// What a replica shows of a matrix: the numbers at their places; or some rows one behind the other, and
// which.
struct PublishedRows {
  at::Tensor values;   // [rows, columns]
  at::Tensor numbers;  // int64 [1 + rows]: how many rows, or `whole_matrix`; then these, ascending
  static constexpr std::int64_t whole_matrix = -1;
};

// Writes what the others need of `gradient`, sparse with each row once or whole: all but the slice `own`,
// which may be empty.
void publish_rows(const at::Tensor& gradient, const Shard& own, const PublishedRows& to);

// `sum_in_order` of the rows of `slice`: [rows of the slice, columns], sparse with each row once where all
// are. `gradient` is this replica's, which `publish_rows` was given.
at::Tensor sum_of_rows(const at::Tensor& gradient, const Shard& slice,
                       const std::vector<PublishedRows>& shown, int rank);

}  // namespace trainyard::runner
