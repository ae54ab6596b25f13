#include "runner/optimizer/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "base/named_row.h"
#include "models/networks/libtorch_private.h"
#include "runner/gradients/sparse_gradient.h"
#include "runner/optimizer/grouped_optimizer.h"
#include "runner/optimizer/sparse_update.h"

namespace trainyard::runner {

namespace {

// Indices of the parameters that a step updates by the fused kernel, and by the kernel for sparse gradients.
struct DenseSparseSplit {
  std::vector<std::size_t> fused;
  std::vector<at::Tensor> gradients;  // dense, one per element of `fused`
  std::vector<std::size_t> by_rows;
};

bool is_set(const std::optional<at::Tensor>& found_inf) {
  return found_inf && found_inf->item<float>() != 0;
}

// The fused kernels evaluate `found_inf` themselves. If it is set, the sparse updates are left out here.
DenseSparseSplit split_dense_sparse(const std::vector<at::Tensor>& parameters,
                                    const std::vector<at::Tensor>& gradients,
                                    const std::optional<at::Tensor>& found_inf) {
  DenseSparseSplit split;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const bool has_kernel = parameters[i].scalar_type() == at::kFloat && parameters[i].is_contiguous();
    if (gradients[i].is_sparse() && has_kernel) {
      split.by_rows.push_back(i);
    } else {
      split.fused.push_back(i);
      split.gradients.push_back(whole(gradients[i]));
    }
  }
  if (!split.by_rows.empty() && is_set(found_inf)) split.by_rows.clear();
  return split;
}

// Calls `update(part, rows)` in parallel for parts of `parameter` that cover it.
template <class Update>
void for_each_part(const at::Tensor& parameter, const at::Tensor& gradient, const Update& update) {
  const at::Tensor rows = libtorch::sparse_rows(gradient).contiguous(),
                   values = libtorch::sparse_values(gradient).contiguous();
  const GivenRows given{rows.const_data_ptr<std::int64_t>(), values.const_data_ptr<float>(), rows.size(1)};
  const std::int64_t columns = parameter.stride(0);
  at::parallel_for(0, parameter.size(0), /*grain_size=*/64, [&](std::int64_t begin, std::int64_t end) {
    update(MatrixPart{begin, end, columns}, given);
  });
}

at::TensorOptions device_of(const std::vector<at::Tensor>& parameters) {
  return at::TensorOptions(parameters.empty() ? at::Device(at::kCPU) : parameters.front().device());
}

// v ← momentum · v + (g + weight_decay · p), or in the first step v ← g + weight_decay · p
// p ← p − learning_rate · v
class Sgd final : public Optimizer {
 public:
  Sgd(const experiments::Optimizer& settings, std::vector<at::Tensor> parameters, const ZerosLike& zeros)
      : settings_(settings), parameters_(std::move(parameters)) {
    if (settings_.momentum != 0) velocity_ = zeros(parameters_);  // the kernel requires none without momentum
  }
  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    const DenseSparseSplit split = split_dense_sparse(parameters_, gradients, found_inf);
    // A first step that may be skipped starts from velocity 0 instead, with the same result.
    const bool begins = first_ && !found_inf;
    if (!split.fused.empty()) {
      libtorch::fused_sgd(chosen(parameters_, split.fused), split.gradients, chosen(velocity_, split.fused),
                          settings_.weight_decay, settings_.momentum, settings_.learning_rate, begins,
                          found_inf);
    }
    for (const std::size_t i : split.by_rows) update_rows_of(i, gradients[i]);
    first_ = false;
  }
  void set_learning_rate(double learning_rate) override { settings_.learning_rate = learning_rate; }
  std::vector<std::vector<at::Tensor>> state() const override {
    if (velocity_.empty()) return {};
    return {velocity_};
  }
  void restore_step(std::int64_t steps) override { first_ = steps == 0; }

 private:
  void update_rows_of(std::size_t i, const at::Tensor& gradient) {
    const SgdStep step{.learning_rate = static_cast<float>(settings_.learning_rate),
                       .momentum = static_cast<float>(settings_.momentum),
                       .weight_decay = static_cast<float>(settings_.weight_decay),
                       .first = first_};
    float* const velocity = velocity_.empty() ? nullptr : velocity_[i].mutable_data_ptr<float>();
    float* const parameter = parameters_[i].mutable_data_ptr<float>();
    for_each_part(parameters_[i], gradient, [&](const MatrixPart& part, const GivenRows& given) {
      update_rows(step, part, parameter, velocity, given);
    });
  }

  experiments::Optimizer settings_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> velocity_;
  bool first_ = true;
};

// Adam (Kingma and Ba 2015). Weight decay is added to the gradient, or if `decoupled` subtracted from the parameter (Loshchilov and Hutter 2019).
template <bool decoupled>
class Adam final : public Optimizer {
 public:
  Adam(const experiments::Optimizer& settings, std::vector<at::Tensor> parameters, const ZerosLike& zeros)
      : settings_(settings),
        parameters_(std::move(parameters)),
        mean_(zeros(parameters_)),
        square_(zeros(parameters_)),
        steps_(parameters_.size(), at::zeros({}, device_of(parameters_).dtype(at::kFloat))) {}
  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& found_inf) override {
    const at::NoGradGuard no_grad;
    if (!steps_.empty()) steps_.front().add_(1);
    if (!steps_.empty() && found_inf) steps_.front().sub_(*found_inf);
    const DenseSparseSplit split = split_dense_sparse(parameters_, gradients, found_inf);
    if (!split.fused.empty()) update_fused(split, found_inf);
    for (const std::size_t i : split.by_rows) update_rows_of(i, gradients[i]);
  }
  void set_learning_rate(double learning_rate) override { settings_.learning_rate = learning_rate; }
  std::vector<std::vector<at::Tensor>> state() const override { return {mean_, square_, steps_}; }

 private:
  void update_fused(const DenseSparseSplit& split, const std::optional<at::Tensor>& found_inf) {
    libtorch::fused_adam(decoupled, chosen(parameters_, split.fused), split.gradients,
                         chosen(mean_, split.fused), chosen(square_, split.fused),
                         chosen(steps_, split.fused),
                         {settings_.learning_rate, settings_.beta1, settings_.beta2, settings_.weight_decay,
                          settings_.epsilon},
                         found_inf);
  }

  void update_rows_of(std::size_t i, const at::Tensor& gradient) {
    const double t = steps_[i].template item<float>(), decay = settings_.weight_decay;
    const auto& [beta1, beta2] = std::pair(settings_.beta1, settings_.beta2);
    const AdamStep step{.step_size = static_cast<float>(settings_.learning_rate / (1 - std::pow(beta1, t))),
                        .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))),
                        .beta1 = static_cast<float>(beta1),
                        .beta2 = static_cast<float>(beta2),
                        .epsilon = static_cast<float>(settings_.epsilon),
                        .weight_decay = static_cast<float>(decoupled ? 0 : decay),
                        .keep = static_cast<float>(decoupled ? 1 - settings_.learning_rate * decay : 1)};
    float* const parameter = parameters_[i].mutable_data_ptr<float>();
    float* const mean = mean_[i].mutable_data_ptr<float>();
    float* const square = square_[i].mutable_data_ptr<float>();
    for_each_part(parameters_[i], gradient, [&](const MatrixPart& part, const GivenRows& given) {
      update_rows(step, part, parameter, mean, square, given);
    });
  }

  experiments::Optimizer settings_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> mean_;
  std::vector<at::Tensor> square_;
  std::vector<at::Tensor> steps_;  // one entry per parameter for the kernel, all the same tensor
};

template <class Kind>
std::unique_ptr<Optimizer> make(const experiments::Optimizer& settings, std::vector<at::Tensor> parameters,
                                const ZerosLike& zeros) {
  return std::make_unique<Kind>(settings, std::move(parameters), zeros);
}

struct OptimizerKind {
  const char* kind;
  std::unique_ptr<Optimizer> (*make)(const experiments::Optimizer&, std::vector<at::Tensor>,
                                     const ZerosLike&);
};

constexpr std::array optimizer_kinds{OptimizerKind{"sgd", make<Sgd>},
                                     OptimizerKind{"adam", make<Adam<false>>},
                                     OptimizerKind{"adamw", make<Adam<true>>}};

double constant(const experiments::Run&, const StepPlace&) {
  return 1;
}

double step(const experiments::Run& run, const StepPlace& place) {
  const auto done = static_cast<double>(place.epoch - 1),
             every = static_cast<double>(run.optimizer.schedule_epochs);
  return std::pow(run.optimizer.schedule_factor, std::floor(done / every));
}

double half_cosine(double done, double all) {
  return (1 + std::cos(std::numbers::pi * done / all)) / 2;
}

double cosine(const experiments::Run& run, const StepPlace& place) {
  return half_cosine(static_cast<double>(place.epoch - 1), static_cast<double>(run.epochs));
}

double cosine_by_step(const experiments::Run& run, const StepPlace& place) {
  const auto warmup = static_cast<double>(run.optimizer.warmup_steps);
  const double all = static_cast<double>(run.epochs * place.steps) - warmup;
  return half_cosine(place.done() - warmup, std::max(all, 1.0));
}

constexpr std::array schedules{LearningRateSchedule{"constant", constant}, LearningRateSchedule{"step", step},
                               LearningRateSchedule{"cosine", cosine},
                               LearningRateSchedule{"cosine-by-step", cosine_by_step, true}};

}  // namespace

std::vector<at::Tensor> zeros_like_each(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  zeros.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) zeros.push_back(at::zeros_like(tensor.detach()));
  return zeros;
}

std::unique_ptr<Optimizer> make_optimizer(const experiments::Optimizer& settings,
                                          std::vector<at::Tensor> parameters,
                                          const std::vector<models::GroupFactors>& factors,
                                          const ZerosLike& zeros) {
  const OptimizerKind& row = named_row(optimizer_kinds, &OptimizerKind::kind, "optimizer", settings.kind);
  if (std::ranges::any_of(factors, [](const auto& each) { return each != models::GroupFactors(); }))
    return grouped_optimizer(settings, parameters, factors, zeros, row.make);
  return row.make(settings, std::move(parameters), zeros);
}

const LearningRateSchedule& find_schedule(std::string_view name) {
  return named_row(schedules, &LearningRateSchedule::name, "learning rate schedule", name);
}

std::vector<models::GroupFactors> group_factors(const experiments::Optimizer& settings,
                                                const std::vector<at::Tensor>& parameters,
                                                std::vector<models::GroupFactors> factors) {
  const bool some = settings.weight_decay > 0 && settings.weight_decay_of == "matrices";
  for (std::size_t i = 0; some && i < factors.size(); ++i)
    if (parameters[i].dim() < 2) factors[i].weight_decay = 0;
  return factors;
}

double learning_rate_at(const LearningRateSchedule& schedule, const experiments::Run& run,
                        const StepPlace& place) {
  const double rate = experiments::effective_learning_rate(run), least = run.optimizer.learning_rate_min;
  const auto warmup = static_cast<double>(run.optimizer.warmup_steps);
  if (place.done() < warmup) return rate * (place.done() + 1) / warmup;
  return least + (rate - least) * schedule.factor(run, place);
}

}  // namespace trainyard::runner
