#include "runner/optimizer/zero.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "runner/gradients/sparse_gradient.h"
#include "runner/optimizer/server_parts.h"
#include "runner/optimizer/unit_slices.h"

namespace trainyard::runner {

namespace {

using Slices = std::shared_ptr<UnitSlices>;

// Adds the gradients of this replica's slices.
class SlicedReducer final : public BucketedReducer {
 public:
  // `turns`: as of BucketedReducer. If they are reduced one by one, only one unit at a time is in flight.
  SlicedReducer(std::vector<networks::NamedParameter> of, Slices slices, int turns)
      : BucketedReducer(std::move(of), slices->layout().buckets(), turns),
        slices_(std::move(slices)),
        one_at_a_time_(turns > 0),
        whole_(parameters().size()),
        sums_(buckets().size()) {
    for (std::size_t unit = 0; unit < buckets().size(); ++unit) {
      own_.push_back(slices_->pieces(unit, rank()));
      first_.push_back(gradients_.size());
      gradients_.resize(gradients_.size() + own_.back().size());
    }
  }

  const std::vector<at::Tensor>& gradients() const override { return gradients_; }
  bool sharded() const override { return true; }
  std::vector<at::Tensor> whole_gradients() override {
    std::vector<at::Tensor> wholes(parameters().size());
    for (std::size_t unit = 0; unit < buckets().size(); ++unit) {
      const std::vector<at::Tensor> views =
          slices_->parameters_in(unit, slices_->gathered(unit, sums_[unit]));
      for (std::size_t k = 0; k < views.size(); ++k) wholes[buckets()[unit][k]] = views[k];
    }
    return wholes;
  }

 private:
  struct Flight {
    std::size_t unit;
    std::vector<at::Tensor> received;  // per replica: its gradients of the own slice
    Works works = {};
  };

  int rank() const { return slices_->replicas().rank(); }
  int size() const { return slices_->replicas().size(); }

  void drop_sums() override {
    std::ranges::fill(sums_, at::Tensor());
    std::ranges::fill(gradients_, at::Tensor());
  }

  void forward_of_zeros() override {
    for (std::size_t unit = buckets().size(); unit-- > 0;) {
      slices_->gather(unit);
      slices_->free(unit);
    }
  }

  void take(std::size_t parameter, const at::Tensor& gradient) override {
    slices_->gather(slices_->unit_of(parameter));  // not yet gathered if the gradients are zeros
    whole_[parameter] = whole(coalesced(gradient));
    if (gradient.is_sparse()) at::Tensor(parameters()[parameter].value).mutable_grad().reset();
  }

  std::unique_ptr<Communicator::Work> start_reduction(std::size_t unit) override {
    while (one_at_a_time_ && !flights_.empty()) land();
    slices_->free(unit);
    Communicator& replicas = slices_->replicas();
    Flight& flight =
        flights_.emplace_back(Flight{unit, std::vector<at::Tensor>(static_cast<std::size_t>(size()))});
    if (replicas.capabilities().ordered_messages) {  // messages only between neighbours
      for (const std::size_t i : buckets()[unit]) flight.works.push_back(replicas.all_reduce(whole_[i]));
    } else {
      for (int other = 0; other < size(); ++other)
        if (other != rank()) exchange_with(other, flight);
    }
    measure();
    return finished_by([this, unit] {
      while (!flights_.empty() && flights_.front().unit <= unit) land();
    });
  }

  void exchange_with(int other, Flight& flight) {
    const std::size_t unit = flight.unit;
    const int tag = UnitSlices::gradient_tag(unit);
    at::Tensor& slice = flight.received[static_cast<std::size_t>(other)];
    slice = at::zeros({slices_->slice_size(unit)}, whole_[buckets()[unit].front()].options());
    for (const UnitSlices::Piece& piece : slices_->pieces(unit, other))
      flight.works.push_back(slices_->replicas().send(piece.of(whole_[piece.parameter]), other, tag));
    for (const UnitSlices::Piece& piece : own_[unit])
      flight.works.push_back(slices_->replicas().receive(piece.in(slice), other, tag));
  }

  // Waits for the first unit in flight, adds the slices in the order of the replicas, and drops the whole gradients.
  void land() {
    const at::NoGradGuard no_grad;
    Flight flight = std::move(flights_.front());
    flights_.pop_front();
    wait_for(flight.works);
    const at::Tensor sum = sum_of(flight);
    at::Tensor& all = sums_[flight.unit];
    all = first_turn() ? sum : all.add_(sum);
    for (std::size_t k = 0; k < own_[flight.unit].size(); ++k)
      gradients_[first_[flight.unit] + k] = own_[flight.unit][k].in(all);
    for (const std::size_t i : buckets()[flight.unit]) {
      whole_[i].reset();
      at::Tensor(parameters()[i].value).mutable_grad().reset();
    }
  }

  // In the memory of the first slice that was received. a + b is b + a, bit by bit.
  at::Tensor sum_of(const Flight& flight) const {
    const std::size_t unit = flight.unit;
    const bool reduced = slices_->replicas().capabilities().ordered_messages;
    const int first = rank() == 0 ? 1 : 0;
    at::Tensor sum = reduced
                         ? at::zeros({slices_->slice_size(unit)}, whole_[buckets()[unit].front()].options())
                         : flight.received[static_cast<std::size_t>(first)];
    const auto add = [&](int replica) {
      if (replica != rank()) return sum.add_(flight.received[static_cast<std::size_t>(replica)]), void();
      for (const UnitSlices::Piece& piece : own_[unit]) piece.in(sum).add_(piece.of(whole_[piece.parameter]));
    };
    if (reduced) return add(rank()), sum;
    add(1 - first);
    for (int replica = 2; replica < size(); ++replica) add(replica);
    return sum;
  }

  void measure() {
    if (slices_->measured) return;
    std::int64_t gradients = 0, messages = 0;
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      const at::Tensor& gradient = whole_[i].defined() ? whole_[i] : parameters()[i].value.grad();
      if (gradient.defined())
        gradients += static_cast<std::int64_t>(gradient.numel() * gradient.element_size());
    }
    for (const at::Tensor& sum : sums_)
      gradients += sum.defined() ? static_cast<std::int64_t>(sum.nbytes()) : 0;
    for (const Flight& flight : flights_)
      for (const at::Tensor& slice : flight.received)
        messages += slice.defined() ? static_cast<std::int64_t>(slice.nbytes()) : 0;
    HeldBytes& fullest = slices_->fullest;
    fullest.gradients = std::max(fullest.gradients, gradients);
    fullest.messages = std::max(fullest.messages, messages);
  }

  Slices slices_;
  bool one_at_a_time_;
  std::vector<std::vector<UnitSlices::Piece>> own_;  // per unit
  std::vector<std::size_t> first_;                   // per unit: index in `gradients_`
  std::vector<at::Tensor> whole_;                    // per parameter: this replica's gradient
  std::vector<at::Tensor> sums_;                     // per unit: of the own slice
  std::vector<at::Tensor> gradients_;                // pieces of `sums_`
  std::deque<Flight> flights_;                       // in the order of the units
};

// Updates the own slices.
class SlicedOptimizer final : public Optimizer {
 public:
  SlicedOptimizer(const experiments::Optimizer& settings, const std::vector<models::GroupFactors>& factors,
                  Slices slices)
      : slices_(std::move(slices)),
        own_(make_optimizer(
            settings, slices_->own_pieces(),
            slices_->layout().of_slices(factors, slices_->replicas().rank(), slices_->replicas().size()))) {}

  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& found_inf) override {
    if (!gradients.empty()) own_->update(gradients, found_inf);
  }
  void synchronize() override { slices_->exchange_kept(); }
  void set_learning_rate(double learning_rate) override { own_->set_learning_rate(learning_rate); }
  void restore_step(std::int64_t steps) override { own_->restore_step(steps); }
  std::vector<std::vector<at::Tensor>> state() const override { return own_->state(); }

 private:
  Slices slices_;
  std::unique_ptr<Optimizer> own_;
};

class SlicedParameters final : public WholeParameters {
 public:
  explicit SlicedParameters(Slices slices) : slices_(std::move(slices)) {}

  void begin_step(networks::ForwardContext& of_layers) override {
    slices_->begin_step();
    of_layers.before_layer = [this](std::size_t layer) { gather(slices_->freed_unit_of(layer)); };
    of_layers.after_layer = [this](std::size_t layer, const networks::Activations& made) {
      const std::size_t unit = slices_->freed_unit_of(layer);
      if (unit == slices_->units()) return;
      slices_->free(unit);
      for (const at::Tensor& value : made)
        if (value.requires_grad()) value.register_hook([this, unit](const at::Tensor&) { gather(unit); });
    };
  }
  void gather() override { slices_->gather_all(); }
  std::optional<HeldBytes> held() override {
    slices_->measured = true;
    return slices_->fullest;
  }

 private:
  void gather(std::size_t unit) {
    if (unit < slices_->units()) slices_->gather(unit);
  }

  Slices slices_;
};

}  // namespace

Update zero_update(const experiments::Optimizer& settings, const networks::Network& network,
                   const std::vector<models::GroupFactors>& factors, const std::string& sharding, int turns,
                   Communicator& replicas) {
  const auto slices = std::make_shared<UnitSlices>(network, replicas, sharding == "parameters");
  Update update{
      std::make_unique<SlicedReducer>(network.parameters(), slices, sharding == "optimizer" ? 0 : turns),
      std::make_unique<SlicedOptimizer>(settings, factors, slices)};
  update.whole = std::make_unique<SlicedParameters>(slices);
  return update;
}

}  // namespace trainyard::runner
