// How replicas that share memory share out the work on a model's parameters: each of them sums the gradients
// of its slices, and updates these. The parameters lie in one memory, a bucket
// (runner/gradients/bucketed_reducer.h) behind the other, and every bucket is cut into as many slices as
// there are replicas: so each has as much to do as the others whenever gradients arrive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runner/gradients/bucketed_reducer.h"

namespace trainyard::runner {

// Part of a parameter: its numbers from `begin` to `end`, as they lie in memory.
struct Slice {
  std::size_t parameter;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t columns = 0;  // of a matrix that is cut between its rows; else 0

  std::int64_t first_row() const { return begin / columns; }
  std::int64_t last_row() const { return end / columns; }  // the one behind it
  // The slice of `whole`, which is laid out like the parameter: [rows, columns] of a matrix, else [numbers].
  at::Tensor of(const at::Tensor& whole) const;
};

class SliceLayout {
 public:
  // Of `parameters` without holes, all of one type, in `buckets`. A matrix alone in its bucket is cut between
  // rows.
  SliceLayout(const std::vector<at::Tensor>& parameters, Buckets buckets);

  std::size_t parameters() const { return places_.size(); }
  const Buckets& buckets() const { return buckets_; }
  std::int64_t numbers() const { return numbers_; }  // in memory, gaps between parameters among them
  // Columns of a parameter that is cut between rows; else 0.
  std::int64_t columns(std::size_t parameter) const { return places_[parameter].columns; }

  // A parameter in `memory` [numbers()], with its sizes and strides.
  at::Tensor in(const at::Tensor& memory, std::size_t parameter) const;

  // What replica `rank` of `size` has of a bucket; may be nothing.
  std::vector<Slice> slices(std::size_t bucket, int rank, int size) const;
  std::vector<Slice> slices(int rank, int size) const;  // of all buckets, one after the other

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

}  // namespace trainyard::runner
