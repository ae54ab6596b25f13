// Layers of a model and their totals, for the tests of models. Expected counts are from PyTorch 2.13:
// sum(p.numel() for p in model.parameters()), and torch.utils.flop_counter for one sample.
#pragma once

#include <string>
#include <vector>

#include "models/catalogue.h"

namespace trainyard::tests {

struct Totals {
  std::int64_t parameters = 0;
  double forward_flops = 0;
};

models::Hyperparameters defaults(const models::Model& model);
// The layers of a model with its default hyper-parameters, except those in `changed`.
std::vector<models::Node> layers_of(const std::string& model, const models::InputShape& input,
                                    const models::Hyperparameters& changed = {});
Totals totals(const std::vector<models::Node>& layers);
std::string kinds(const std::vector<models::Node>& layers);  // "0:flatten 1:linear"

inline constexpr models::InputShape grey28{.image = {1, 28, 28}, .classes = 10};
inline constexpr models::InputShape color32{.image = {3, 32, 32}, .classes = 10};

}  // namespace trainyard::tests
