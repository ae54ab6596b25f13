#include "runner/optimizer/sharded_optimizer.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace trainyard::runner {

namespace {

class ShardedOptimizer final : public Optimizer {
 public:
  // `memory` contains all parameters, in `layout`.
  ShardedOptimizer(const experiments::Optimizer& settings, const std::vector<at::Tensor>& parameters,
                   ShardLayout layout, const at::Tensor& memory, Communicator& replicas,
                   SharedMemoryFeatures& shared, const std::vector<models::GroupFactors>& factors)
      : replicas_(replicas), layout_(std::move(layout)) {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor value = layout_.in(memory, i);
      if (replicas.rank() == 0) value.copy_(parameters[i]);
      at::Tensor(parameters[i]).set_data(value);
    }
    const auto of_slices = layout_.of_slices(factors, replicas.rank(), replicas.size());
    own_ = make_optimizer(settings, slices_in(memory), of_slices, [&](const std::vector<at::Tensor>&) {
      remembered_.push_back(shared.allocate_shared(memory.numel(), memory.scalar_type()));
      return slices_in(remembered_.back());
    });
    replicas.barrier();
  }

  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& found_inf) override {
    if (!gradients.empty()) own_->update(gradients, found_inf);
  }
  void synchronize() override { replicas_.barrier(); }
  void set_learning_rate(double learning_rate) override { own_->set_learning_rate(learning_rate); }
  void restore_step(std::int64_t steps) override { own_->restore_step(steps); }

  std::vector<std::vector<at::Tensor>> state() const override {
    const at::NoGradGuard no_grad;
    std::vector<std::vector<at::Tensor>> moments = own_->state();
    for (std::size_t k = 0; k < moments.size(); ++k)
      moments[k] =
          k < remembered_.size() ? layout_.wholes_in(remembered_[k]) : for_each_parameter(moments[k]);
    return moments;
  }

 private:
  std::vector<at::Tensor> slices_in(const at::Tensor& memory) const {
    return layout_.slices_in(memory, replicas_.rank(), replicas_.size());
  }

  // One entry per parameter of a value that all shards share.
  std::vector<at::Tensor> for_each_parameter(const std::vector<at::Tensor>& of_slices) const {
    if (of_slices.empty()) return {};
    return std::vector<at::Tensor>(layout_.parameters(), of_slices.front());
  }

  Communicator& replicas_;
  ShardLayout layout_;
  std::vector<at::Tensor> remembered_;  // per row of state that is as large as the parameters
  std::unique_ptr<Optimizer> own_;      // updates this replica's shards
};

}  // namespace

bool can_share(const std::vector<at::Tensor>& parameters) {
  return !parameters.empty() && std::ranges::all_of(parameters, [&](const at::Tensor& parameter) {
    return parameter.is_cpu() && parameter.is_non_overlapping_and_dense() && parameter.numel() > 0 &&
           parameter.scalar_type() == parameters.front().scalar_type();
  });
}

std::unique_ptr<Optimizer> sharded_optimizer(const experiments::Optimizer& settings,
                                             const std::vector<at::Tensor>& parameters,
                                             const ShardLayout& layout, Communicator& replicas,
                                             const std::vector<models::GroupFactors>& factors) {
  SharedMemoryFeatures* const shared = replicas.shared_memory();
  if (!shared) return nullptr;
  const at::Tensor memory = shared->allocate_shared(layout.numbers(), parameters.front().scalar_type());
  return std::make_unique<ShardedOptimizer>(settings, parameters, layout, memory, replicas, *shared, factors);
}

}  // namespace trainyard::runner
