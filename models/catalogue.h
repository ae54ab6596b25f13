// Catalogue of models: one row per model with task, hyper-parameters and layers. No LibTorch.
// - `experiments` checks experiment files against the catalogue and balances stages by the cost of the
//   layers.
// - `models/networks` builds the layers. `trainyard list models` prints the catalogue.
//
// A model is a folder:
// - `models/NAME/NAME.cpp`: its layers and its row of the catalogue.
// - `models/NAME/NAME.py`: the same model in PyTorch. A test compares both.
// - `models/NAME/NAME_test.cpp`: its test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter.h"
#include "models/datasets/datasets.h"

namespace trainyard::models {

using Hyperparameters = std::map<std::string, Value>;  // by name; every parameter of the model has a value

// One layer of a model. A pipeline stage is a sequence of consecutive layers.
struct Layer {
  std::string path;  // "0", "1", …: part of the names of parameters and random streams
  std::string kind;  // "linear", "conv2d", …: see `Chain`
  std::map<std::string, std::int64_t> sizes;  // the sizes of this kind: {"inputs", 784}, {"outputs", 250}
  double dropout = 0;                         // probability; for kind "dropout" only
  std::int64_t parameters = 0;                // number of trainable values
  double forward_flops = 0;                   // multiply-adds × 2 for one typical sample
  double forward_bytes = 0;                   // bytes moved for one typical sample; for embeddings only
};

// Estimated cost of a layer, by which stages are balanced: its operations, plus 4 operations per byte moved.
// 4 is the ridge point of a CPU with four cores, rounded: the operations that take as long as moving one byte
// (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009, section 3).
double counted_cost(const Layer& layer);

struct Model {
  std::string name;                   // "mlp"
  std::string title;                  // "MLP"
  std::string task;                   // "classification", "reconstruction", "translation": models/metrics.h
  std::vector<std::string> datasets;  // the data sets that it can be trained on, the default first
  std::vector<Parameter> hyperparameters;
  std::string about;  // one line
  // UserError if the model cannot have this input: the images are too small for its pooling layers.
  std::function<std::vector<Layer>(const Hyperparameters&, const InputShape&)> layers;
};

std::span<const Model> catalogue();
std::vector<std::string> model_names();
const Model& find_model(std::string_view name);  // UserError if there is no such model

}  // namespace trainyard::models
