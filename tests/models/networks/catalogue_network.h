// Networks of the catalogue's models, for tests.
#pragma once

#include <optional>
#include <string_view>

#include "models/catalogue.h"
#include "models/networks/network.h"

namespace trainyard::networks {

inline Network build_network(std::string_view model, const models::Hyperparameters& hyperparameters,
                             const models::InputShape& input, std::uint64_t seed,
                             at::ScalarType dtype = at::kFloat,
                             const std::optional<models::NodeRange>& stage = {},
                             at::Device device = at::kCPU) {
  return build_network(models::find_model(model).graph(hyperparameters, input), {seed, dtype, device}, stage);
}

}  // namespace trainyard::networks
