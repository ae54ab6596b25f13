// Reduce-scatter of gradients through shared memory: layout of the shards, and the reducer that sums them.
// Each replica publishes its gradients for the other replicas and sums its own shards. Unlike an all-reduce,
// the sums are not written back to all replicas.
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

// A shard of a parameter: its values from `begin` to `end` in memory order.
struct Shard {
  std::size_t parameter;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t columns = 0;  // for a matrix that is divided between rows; else 0

  std::int64_t first_row() const { return begin / columns; }
  std::int64_t last_row() const { return end / columns; }  // exclusive
  // The shard of `whole`, which has the layout of the parameter: [rows, columns] for a matrix, else [values].
  at::Tensor of(const at::Tensor& whole) const;
};

// Numbers from `begin` to `end` of a memory.
struct MemoryRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// How the memory of a bucket is divided among ranks.
enum class Division {
  lines,    // equally; parts and parameters begin at cache lines, so that no two ranks write to the same one
  numbers,  // equally, without gaps
  whole     // each parameter belongs to one rank, in turn; it is alone in its bucket
};

// Layout of the shards of all parameters. The parameters are in one memory, bucket after bucket
// (runner/gradients/reducer.h). Each bucket is divided into one shard per replica, so that all replicas have
// equal work at any time of backward.
class ShardLayout {
 public:
  // `parameters` are dense and have one type. A matrix that is alone in its bucket is divided between rows.
  ShardLayout(const std::vector<at::Tensor>& parameters, Buckets buckets,
              Division division = Division::lines);

  std::size_t parameters() const { return places_.size(); }
  const Buckets& buckets() const { return buckets_; }
  std::int64_t numbers() const { return numbers_; }  // values in memory, including gaps between parameters
  // Columns of a parameter that is divided between rows, else 0.
  std::int64_t columns(std::size_t parameter) const { return places_[parameter].columns; }

  // The view of a parameter in `memory` [numbers()], with the parameter's sizes and strides.
  at::Tensor in(const at::Tensor& memory, std::size_t parameter) const;

  // Where the shards of replica `rank` of `size` in a bucket are in memory. May be empty.
  MemoryRange range(std::size_t bucket, int rank, int size) const;
  // Shards of replica `rank` of `size` in a bucket. May be empty.
  std::vector<Shard> slices(std::size_t bucket, int rank, int size) const;
  std::vector<Shard> slices(int rank, int size) const;  // in all buckets, in their order

  // The views of all parameters in `memory`, and those of the slices of a replica.
  std::vector<at::Tensor> wholes_in(const at::Tensor& memory) const;
  std::vector<at::Tensor> slices_in(const at::Tensor& memory, int rank, int size) const;
  // The values of the slices of a replica; `of_parameters` has one per parameter, or none.
  template <typename T>
  std::vector<T> of_slices(const std::vector<T>& of_parameters, int rank, int size) const {
    std::vector<T> values;
    for (const Shard& slice : slices(rank, size))
      if (!of_parameters.empty()) values.push_back(of_parameters[slice.parameter]);
    return values;
  }

 private:
  struct Place {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t columns = 0;
  };

  Buckets buckets_;
  Division division_;
  std::vector<Place> places_;  // per parameter
  std::int64_t numbers_ = 0;
};

// Reducer for replicas that share memory, else null. Collective.
// - `gradients` are the gradients of this replica's shards in `layout`.
// - All replicas must pass a barrier between `finish` and the next backward. A sharded optimizer does so.
// - `replicas` must outlive the reducer.
std::unique_ptr<Reducer> sharded_reducer(const std::vector<networks::NamedParameter>& parameters,
                                         const ShardLayout& layout, Communicator& replicas);

}  // namespace trainyard::runner
