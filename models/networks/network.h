// A model of the catalogue as single-device code: its chain of layers, or the run of consecutive layers that
// a stage of a pipeline holds. Knows nothing of processes, ranks and devices; `runner` applies parallelism
// from outside.
//
// What a network takes and gives, by the model's task and data:
//   classification of images  {images [batch, channel, height, width]}        → {logits [batch, classes]}
//   classification of texts   {tokens [batch, length], int64, 0 is padding}   → {logits [batch, classes]}
//   reconstruction            {images [batch, channel, height, width]}        → {images, of the same shape}
//   translation               {source [batch, length], target [batch, steps]} → {logits [batch, steps,
//   tokens]}
//                             where `target` is the translation without its last token
//                             ({logits [positions, tokens]} where ForwardContext names positions)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/catalogue.h"
#include "models/networks/layers.h"

namespace trainyard::networks {

struct Network {
  std::vector<Layer> layers;
  bool channels_last = false;  // the memory order it takes images in fastest; any order is right

  Activations forward(const Activations& inputs, const ForwardContext& context = {}) const;
  std::vector<NamedParameter> parameters() const;  // in the order of the layers
  std::vector<NamedParameter> buffers() const;
  std::vector<NamedParameter> state() const;  // the parameters, then the buffers
  std::vector<at::Tensor> parameter_values() const;
  std::int64_t parameter_count() const;
};

// Copies the values of the same names into the network's parameters and buffers. InternalError where one is
// missing or has another shape; what the network has not (another stage's) is passed over.
void load_values(const Network& network, const std::vector<NamedParameter>& values);

// Layers first … last − 1 of a chain.
struct LayerRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

// Builds `model` with `hyperparameters` (complete, see the catalogue), or the `stage` of it, on `device`. Its
// weights are a pure function of (seed, layer path): the same in every rank, under every cut and on every
// device. UserError for a name that the catalogue has not, InternalError for a stage that is empty or goes
// beyond the chain.
Network build_network(std::string_view model, const models::Hyperparameters& hyperparameters,
                      const models::InputShape& input, std::uint64_t seed, at::ScalarType dtype = at::kFloat,
                      const std::optional<LayerRange>& stage = {}, at::Device device = at::kCPU);

}  // namespace trainyard::networks
