#include "runner/optimizer/unit_slices.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace trainyard::runner {

namespace {

// Backward computes the gradients of the last layer first. Parameters that other layers read have buckets of their own.
Buckets units_of(const networks::Network& network) {
  const std::vector<networks::ParameterUse> uses = network.parameter_uses();
  std::map<std::pair<std::size_t, bool>, std::vector<std::size_t>> units;
  for (std::size_t i = 0; i < uses.size(); ++i) units[{uses[i].layer, uses[i].only}].push_back(i);
  Buckets buckets;
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) buckets.push_back(unit->second);
  return buckets;
}

}  // namespace

UnitSlices::UnitSlices(const networks::Network& network, Communicator& replicas, bool frees)
    : parameters_(network.parameters()),
      replicas_(replicas),
      layout_(layout_of_one_type(parameters_, units_of(network), "slices")),
      unit_of_(parameters_.size()),
      freed_unit_of_(network.layers().size(), layout_.buckets().size()) {
  const at::NoGradGuard no_grad;
  const std::vector<networks::ParameterUse> uses = network.parameter_uses();
  for (const std::vector<std::size_t>& bucket : layout_.buckets()) {
    const std::size_t number = units_.size();
    const Range own = range(number, replicas_.rank()), last = range(number, replicas_.size() - 1);
    const networks::ParameterUse& use = uses[bucket.front()];
    Unit& unit = units_.emplace_back();
    unit.frees = frees && use.only;
    unit.whole =
        at::zeros({last.begin + last.count}, parameters_.front().value.options().requires_grad(false));
    unit.own_in_whole = unit.whole.narrow(0, own.begin, own.count);
    unit.own = unit.frees ? unit.own_in_whole.clone() : unit.own_in_whole;
    const std::vector<at::Tensor> views = parameters_in(number, unit.whole);
    for (std::size_t k = 0; k < bucket.size(); ++k) {
      unit_of_[bucket[k]] = number;
      views[k].copy_(parameters_[bucket[k]].value);
      at::Tensor(parameters_[bucket[k]].value).set_data(views[k]);
    }
    for (const Piece& piece : pieces(number, replicas_.rank())) own_pieces_.push_back(piece.in(unit.own));
    bytes_ += static_cast<std::int64_t>(unit.whole.nbytes());
    if (!unit.frees) continue;
    freed_unit_of_[use.layer] = number;
    bytes_ += static_cast<std::int64_t>(unit.own.nbytes());
    resize(unit.own, false);
  }
}

UnitSlices::Range UnitSlices::range(std::size_t unit, int replica) const {
  const MemoryRange range = layout_.range(unit, replica, replicas_.size());
  return {range.begin - layout_.begin(layout_.buckets()[unit].front()), range.end - range.begin};
}

std::vector<UnitSlices::Piece> UnitSlices::pieces(std::size_t unit, int replica) const {
  const std::int64_t start = layout_.range(unit, replica, replicas_.size()).begin;
  std::vector<Piece> pieces;
  for (const Shard& shard : layout_.slices(unit, replica, replicas_.size()))
    pieces.push_back({shard.parameter, shard.begin, shard.end - shard.begin,
                      layout_.begin(shard.parameter) + shard.begin - start});
  return pieces;
}

std::vector<at::Tensor> UnitSlices::parameters_in(std::size_t unit, const at::Tensor& memory) const {
  const std::vector<std::size_t>& bucket = layout_.buckets()[unit];
  std::vector<at::Tensor> views;
  for (const std::size_t i : bucket) {
    const at::Tensor& value = parameters_[i].value;
    views.push_back(
        memory.as_strided(value.sizes(), value.strides(), layout_.begin(i) - layout_.begin(bucket.front())));
  }
  return views;
}

// The tensor stays the same for autograd and for all its views.
void UnitSlices::resize(const at::Tensor& memory, bool full) {
  c10::StorageImpl* const storage = memory.storage().unsafeGetStorageImpl();
  const std::size_t bytes = full ? memory.nbytes() : 0;
  bytes_ += static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(storage->nbytes());
  storage->set_data_ptr_noswap(storage->allocator()->allocate(bytes));
  storage->set_nbytes(bytes);
}

void UnitSlices::gather(std::size_t number) {
  Unit& unit = units_[number];
  if (std::exchange(unit.gathered, true)) return;
  const at::NoGradGuard no_grad;
  resize(unit.whole, true);
  unit.own_in_whole.copy_(unit.own);
  resize(unit.own, false);
  if (!measured) fullest.parameters = std::max(fullest.parameters, bytes_);
  Works works;
  exchange(unit.whole, number, works);
  wait_for(works);
}

void UnitSlices::free(std::size_t number) {
  Unit& unit = units_[number];
  if (!unit.frees || !std::exchange(unit.gathered, false)) return;
  const at::NoGradGuard no_grad;
  resize(unit.own, true);
  unit.own.copy_(unit.own_in_whole);
  resize(unit.whole, false);
}

void UnitSlices::gather_all() {
  for (std::size_t unit = 0; unit < units_.size(); ++unit) gather(unit);
}

void UnitSlices::begin_step() {
  for (std::size_t unit = 0; unit < units_.size(); ++unit) free(unit);
  if (!measured) fullest.parameters = bytes_;
}

void UnitSlices::exchange_kept() const {
  Works works;
  for (std::size_t unit = 0; unit < units_.size(); ++unit)
    if (!units_[unit].frees) exchange(units_[unit].whole, unit, works);
  wait_for(works);
}

at::Tensor UnitSlices::gathered(std::size_t unit, const at::Tensor& own) const {
  const at::NoGradGuard no_grad;
  const Range place = range(unit, replicas_.rank()), last = range(unit, replicas_.size() - 1);
  at::Tensor memory = at::zeros({last.begin + last.count}, own.options());
  memory.narrow(0, place.begin, place.count).copy_(own);
  Works works;
  exchange(memory, unit, works);
  wait_for(works);
  return memory;
}

// Each replica sends its slice to all others.
void UnitSlices::exchange(const at::Tensor& memory, std::size_t unit, Works& works) const {
  const auto slice = [&](int replica) {
    const Range place = range(unit, replica);
    return memory.narrow(0, place.begin, place.count);
  };
  const bool has_messages = !replicas_.capabilities().ordered_messages;  // else only between neighbours
  const int tag = 2 * static_cast<int>(unit);
  for (int replica = 0; replica < replicas_.size(); ++replica) {
    const at::Tensor own = slice(replicas_.rank()), other = slice(replica);
    if (!has_messages && other.numel() > 0) replicas_.broadcast(other, replica);
    if (!has_messages || replica == replicas_.rank()) continue;
    if (own.numel() > 0) works.push_back(replicas_.send(own, replica, tag));
    if (other.numel() > 0) works.push_back(replicas_.receive(other, replica, tag));
  }
}

}  // namespace trainyard::runner
