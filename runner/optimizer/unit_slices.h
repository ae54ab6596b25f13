// Slices of the parameters, for replicas that exchange messages: each replica owns one slice of each unit. A unit is the
// parameters of a layer.
// - A unit is gathered or freed: all its numbers are in one memory, or only those of the own slice.
// - It stays gathered if `frees` is false, or if another layer reads one of its parameters or a view of it. Such
//   parameters have units of their own.
// - At first all units are gathered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/gradients/sharded_reducer.h"
#include "runner/optimizer/server_parts.h"
#include "runner/optimizer/update.h"

namespace trainyard::runner {

class UnitSlices {
 public:
  // Moves the parameters of `network`, which are equal on all replicas, to the memory of their units. `replicas` must
  // outlive the slices. UserError if the parameters have different types.
  UnitSlices(const networks::Network& network, Communicator& replicas, bool frees);
  UnitSlices(const UnitSlices&) = delete;
  UnitSlices& operator=(const UnitSlices&) = delete;

  // A unit is a bucket, from the last layer to the first.
  const ShardLayout& layout() const { return layout_; }
  Communicator& replicas() const { return replicas_; }
  std::size_t units() const { return units_.size(); }
  std::size_t unit_of(std::size_t parameter) const { return unit_of_[parameter]; }
  // The unit of a layer that is freed. `units()` if it has none.
  std::size_t freed_unit_of(std::size_t layer) const { return freed_unit_of_[layer]; }

  // A part of a parameter in the slice of a replica.
  struct Piece {
    std::size_t parameter;
    std::int64_t begin;  // in the memory of the parameter
    std::int64_t count;
    std::int64_t at;  // in the slice
    // The numbers of `whole`, which has the layout of the parameter, and those of a slice.
    at::Tensor of(const at::Tensor& whole) const {
      return whole.as_strided({count}, {1}, whole.storage_offset() + begin);
    }
    at::Tensor in(const at::Tensor& slice) const { return slice.narrow(0, at, count); }
  };
  std::vector<Piece> pieces(std::size_t unit, int replica) const;
  std::int64_t slice_size(std::size_t unit) const { return range(unit, replicas_.rank()).count; }
  // The pieces of this replica's slices, unit by unit. They have values if no unit is gathered that can be freed.
  const std::vector<at::Tensor>& own_pieces() const { return own_pieces_; }

  void gather(std::size_t unit);  // collective, in the same order on all replicas
  void gather_all();              // collective
  void free(std::size_t unit);
  void begin_step();  // frees all units, and begins to measure
  // Every replica has updated its slices: exchanges those that are never freed. Collective.
  void exchange_kept() const;
  // The memory of a whole unit, gathered from the slices `own` of all replicas. Collective.
  at::Tensor gathered(std::size_t unit, const at::Tensor& own) const;
  // The views of the parameters in the memory of a unit, in the order of the bucket.
  std::vector<at::Tensor> parameters_in(std::size_t unit, const at::Tensor& memory) const;

  static int gradient_tag(std::size_t unit) { return 2 * static_cast<int>(unit) + 1; }

  // The fullest moments of the steps until `measured`.
  HeldBytes fullest = {};
  bool measured = false;

 private:
  struct Range {
    std::int64_t begin = 0, count = 0;  // in the memory of the unit
  };
  struct Unit {
    at::Tensor whole;  // empty storage if the unit is freed
    at::Tensor
        own;  // own slice; empty storage if the unit is gathered; a view of `whole` if it is never freed
    at::Tensor own_in_whole;  // a view
    bool frees = false;
    bool gathered = true;
  };

  Range range(std::size_t unit, int replica) const;
  void exchange(const at::Tensor& memory, std::size_t unit, Works& works) const;
  void resize(const at::Tensor& memory, bool full);

  std::vector<networks::NamedParameter> parameters_;
  Communicator& replicas_;
  ShardLayout layout_;
  std::vector<std::size_t> unit_of_;        // per parameter
  std::vector<std::size_t> freed_unit_of_;  // per layer
  std::vector<Unit> units_;
  std::vector<at::Tensor> own_pieces_;
  std::int64_t bytes_ = 0;  // of all units now
};

}  // namespace trainyard::runner
