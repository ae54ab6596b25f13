#include "runner/optimizer.h"

#include <array>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "models/named_row.h"

namespace trainyard::runner {

namespace {

// v ← momentum · v + (g + weight_decay · p), in the first step v ← g + weight_decay · p;  p ← p −
// learning_rate · v
class Sgd final : public Optimizer {
 public:
  Sgd(const experiments::Optimizer& settings, std::vector<at::Tensor> parameters, const ZerosLike& zeros)
      : settings_(settings), parameters_(std::move(parameters)) {
    if (settings_.momentum != 0) velocity_ = zeros(parameters_);  // the kernel wants none without momentum
  }
  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& skip) override {
    const at::NoGradGuard no_grad;
    at::_fused_sgd_(
        parameters_, gradients, velocity_, settings_.weight_decay, settings_.momentum,
        settings_.learning_rate, /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false,
        first_ && !skip,  // a first step that may be skipped begins from velocity 0, which is the same
        /*grad_scale=*/{}, skip);
    first_ = false;
  }
  void set_learning_rate(double learning_rate) override { settings_.learning_rate = learning_rate; }
  std::vector<std::vector<at::Tensor>> state() const override {
    if (velocity_.empty()) return {};
    return {velocity_};
  }
  void go_on_after(std::int64_t steps) override { first_ = steps == 0; }

 private:
  experiments::Optimizer settings_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> velocity_;
  bool first_ = true;
};

// Adam (Kingma and Ba 2015) with PyTorch's defaults β = (0.9, 0.999), ε = 1e-8. Weight decay is added to the
// gradient, or with `decoupled` taken from the parameter (Loshchilov and Hutter 2019).
template <bool decoupled>
class Adam final : public Optimizer {
 public:
  Adam(const experiments::Optimizer& settings, std::vector<at::Tensor> parameters, const ZerosLike& zeros)
      : settings_(settings),
        parameters_(std::move(parameters)),
        mean_(zeros(parameters_)),
        square_(zeros(parameters_)),
        steps_(parameters_.size(), at::zeros({}, at::kFloat)) {}
  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& skip) override {
    const at::NoGradGuard no_grad;
    if (!steps_.empty()) steps_.front().add_(1);
    if (!steps_.empty() && skip) steps_.front().sub_(*skip);
    constexpr auto kernel = [](auto&&... arguments) {
      if constexpr (decoupled)
        at::_fused_adamw_(arguments...);
      else
        at::_fused_adam_(arguments...);
    };
    kernel(parameters_, gradients, mean_, square_, at::TensorList(), steps_, settings_.learning_rate,
           /*beta1=*/0.9, /*beta2=*/0.999, settings_.weight_decay, /*eps=*/1e-8, /*amsgrad=*/false,
           /*maximize=*/false, /*grad_scale=*/std::optional<at::Tensor>(), skip);
  }
  void set_learning_rate(double learning_rate) override { settings_.learning_rate = learning_rate; }
  std::vector<std::vector<at::Tensor>> state() const override { return {mean_, square_, steps_}; }

 private:
  experiments::Optimizer settings_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> mean_;
  std::vector<at::Tensor> square_;
  std::vector<at::Tensor> steps_;  // of each parameter, as the kernel wants it: one tensor for all
};

template <class Kind>
std::unique_ptr<Optimizer> make(const experiments::Optimizer& settings, std::vector<at::Tensor> parameters,
                                const ZerosLike& zeros) {
  return std::make_unique<Kind>(settings, std::move(parameters), zeros);
}

struct Row {
  const char* kind;
  std::unique_ptr<Optimizer> (*make)(const experiments::Optimizer&, std::vector<at::Tensor>,
                                     const ZerosLike&);
};

constexpr std::array rows{Row{"sgd", make<Sgd>}, Row{"adam", make<Adam<false>>},
                          Row{"adamw", make<Adam<true>>}};

}  // namespace

std::vector<at::Tensor> zeros_like_each(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> zeros;
  for (const at::Tensor& tensor : tensors) zeros.push_back(at::zeros_like(tensor.detach()));
  return zeros;
}

std::unique_ptr<Optimizer> make_optimizer(const experiments::Optimizer& settings,
                                          std::vector<at::Tensor> parameters, const ZerosLike& zeros) {
  const Row& row = models::named_row(rows, &Row::kind, "optimizer", settings.kind);
  return row.make(settings, std::move(parameters), zeros);
}

}  // namespace trainyard::runner
