#include "runner/shared_optimizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace trainyard::runner {

namespace {

constexpr std::int64_t line = 64;  // numbers: no two replicas write to one line of a cache

std::int64_t rounded_up(std::int64_t count) {
  return (count + line - 1) / line * line;
}

// A parameter in memory that holds all of them, one behind the other.
struct Placed {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  std::int64_t begin;
  std::int64_t end;
  at::Tensor in(const at::Tensor& all) const { return all.as_strided(sizes, strides, begin); }
};

std::vector<Placed> placed(const std::vector<at::Tensor>& parameters) {
  std::vector<Placed> places;
  std::int64_t begin = 0;
  for (const at::Tensor& parameter : parameters) {
    places.push_back({parameter.sizes().vec(), parameter.strides().vec(), begin, begin + parameter.numel()});
    begin = rounded_up(places.back().end);
  }
  return places;
}

// What this replica updates of a parameter: its numbers from `begin` to `end`, as they lie in memory.
struct Piece {
  std::size_t parameter;
  std::int64_t begin;
  std::int64_t end;
  at::Tensor of(const at::Tensor& whole) const {
    return whole.as_strided({end - begin}, {1}, whole.storage_offset() + begin);
  }
};

std::vector<Piece> pieces_of(const std::vector<Placed>& places, int rank, int size) {
  const std::int64_t all = places.back().end;
  const std::int64_t first = rounded_up(all * rank / size);
  const std::int64_t last = rounded_up(all * (rank + 1) / size);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::int64_t begin = std::max(first, places[i].begin);
    const std::int64_t end = std::min(last, places[i].end);
    if (begin < end) pieces.push_back({i, begin - places[i].begin, end - places[i].begin});
  }
  return pieces;
}

class SharedOptimizer final : public Optimizer {
 public:
  // `memory` is for all parameters, each at its place of `places`.
  SharedOptimizer(const experiments::Optimizer& settings, const std::vector<at::Tensor>& parameters,
                  std::vector<Placed> places, const at::Tensor& memory, Communicator& replicas)
      : replicas_(replicas),
        places_(std::move(places)),
        pieces_(pieces_of(places_, replicas.rank(), replicas.size())) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor value = places_[i].in(memory);
      if (replicas.rank() == 0) value.copy_(parameters[i]);
      at::Tensor(parameters[i]).set_data(value);
    }
    own_ = make_optimizer(settings, pieces_in(memory), [&](const std::vector<at::Tensor>&) {
      remembered_.push_back(replicas.allocate_shared(memory.numel(), memory.scalar_type()));
      return pieces_in(remembered_.back());
    });
    replicas.barrier();
  }

  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& skip) override {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> own;
    own.reserve(pieces_.size());
    for (const Piece& piece : pieces_) own.push_back(piece.of(gradients[piece.parameter]));
    if (!own.empty()) own_->update(own, skip);
  }
  void wait_for_others() override { replicas_.barrier(); }
  void set_learning_rate(double learning_rate) override { own_->set_learning_rate(learning_rate); }
  void go_on_after(std::int64_t steps) override { own_->go_on_after(steps); }

  std::vector<std::vector<at::Tensor>> state() const override {
    const at::NoGradGuard no_grad;
    std::vector<std::vector<at::Tensor>> rows = own_->state();
    for (std::size_t k = 0; k < rows.size(); ++k)
      rows[k] = k < remembered_.size() ? wholes_in(remembered_[k]) : for_each_parameter(rows[k]);
    return rows;
  }

 private:
  std::vector<at::Tensor> pieces_in(const at::Tensor& memory) const {
    std::vector<at::Tensor> pieces;
    for (const Piece& piece : pieces_) pieces.push_back(piece.of(places_[piece.parameter].in(memory)));
    return pieces;
  }

  std::vector<at::Tensor> wholes_in(const at::Tensor& memory) const {
    std::vector<at::Tensor> wholes;
    for (const Placed& place : places_) wholes.push_back(place.in(memory));
    return wholes;
  }

  // A number that all pieces have together, as often as there are parameters.
  std::vector<at::Tensor> for_each_parameter(const std::vector<at::Tensor>& of_pieces) const {
    if (of_pieces.empty()) return {};
    return std::vector<at::Tensor>(places_.size(), of_pieces.front());
  }

  Communicator& replicas_;
  std::vector<Placed> places_;
  std::vector<Piece> pieces_;
  std::vector<at::Tensor> remembered_;  // for each row of the state that has numbers for each of a parameter
  std::unique_ptr<Optimizer> own_;      // of the pieces
};

bool can_share(const std::vector<at::Tensor>& parameters) {
  return !parameters.empty() && std::ranges::all_of(parameters, [&](const at::Tensor& parameter) {
    return parameter.is_cpu() && parameter.is_non_overlapping_and_dense() && parameter.numel() > 0 &&
           parameter.scalar_type() == parameters.front().scalar_type();
  });
}

}  // namespace

std::unique_ptr<Optimizer> shared_optimizer(const experiments::Optimizer& settings,
                                            const std::vector<at::Tensor>& parameters,
                                            Communicator& replicas) {
  if (replicas.size() > 1 && can_share(parameters)) {
    std::vector<Placed> places = placed(parameters);
    const at::Tensor memory = replicas.allocate_shared(places.back().end, parameters.front().scalar_type());
    if (memory.defined())
      return std::make_unique<SharedOptimizer>(settings, parameters, std::move(places), memory, replicas);
  }
  return make_optimizer(settings, parameters);
}

}  // namespace trainyard::runner
