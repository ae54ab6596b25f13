// An optimizer whose parameters have factors of the learning rate and of the weight decay, as the parameter
// groups of `torch.optim`.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "runner/optimizer/optimizer.h"

namespace trainyard::runner {

// The tensors at these places, or none if there are none.
std::vector<at::Tensor> chosen(const std::vector<at::Tensor>& all, const std::vector<std::size_t>& places);

// Makes the optimizer of one group.
using MakeGroup = std::function<std::unique_ptr<Optimizer>(
    const experiments::Optimizer&, std::vector<at::Tensor> parameters, const ZerosLike&)>;

// One optimizer per different pair of factors. `factors` has one pair per parameter. The rows of `state` have all
// parameters, in their order.
std::unique_ptr<Optimizer> grouped_optimizer(const experiments::Optimizer& settings,
                                             const std::vector<at::Tensor>& parameters,
                                             const std::vector<models::GroupFactors>& factors,
                                             const ZerosLike& zeros, const MakeGroup& make);

}  // namespace trainyard::runner
