// What can be trained: one row a model, with its hyper-parameters, task, metrics, and its layers as data.
// `experiments` checks files against it, `trainyard list models` prints it, stages are cut by its counted
// cost, and `models/networks` builds each layer from it. No LibTorch.
//
// A model is a folder: `models/<name>/<name>.cpp` chains its layers and is its row, `<name>.py` is the same
// in PyTorch, which a test holds it against, `<name>_test.cpp` its test.
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

using Hyperparameters = std::map<std::string, Value>;  // by name, complete: every parameter of the row

// One layer of the chain; a stage of a pipeline is a run of consecutive layers.
struct Layer {
  std::string path;  // "0", "1", …: the name that parameters and random streams carry
  std::string kind;  // "linear", "conv2d", …: see `Chain`
  std::map<std::string, std::int64_t> sizes;  // what the kind needs: {"inputs", 784}, {"outputs", 250}
  double dropout = 0;                         // probability, of kind "dropout"
  std::int64_t parameters = 0;                // count of trainable numbers
  double forward_flops = 0;                   // counted multiply-adds × 2 for one typical sample
  double forward_bytes = 0;                   // moved for one typical sample, of layers that only look up
};

// By what stages are balanced: operations, and for bytes as many as a processor does in the time in which it
// moves a byte. That is the ridge point of Williams, Waterman, Patterson, «Roofline», CACM 52(4), 2009,
// section 3: 4 of a CPU with four cores, in whole operations.
double counted_cost(const Layer& layer);

struct Model {
  std::string name;                   // "mlp"
  std::string title;                  // "MLP"
  std::string task;                   // "classification", "reconstruction", "translation"
  std::vector<std::string> metrics;   // names in the records: "loss", "correct"
  std::vector<std::string> datasets;  // what it can be trained on, the default first
  std::vector<Parameter> hyperparameters;
  std::string about;  // one line
  // UserError where the input is none for this model: images too small for its poolings.
  std::function<std::vector<Layer>(const Hyperparameters&, const InputShape&)> layers;
};

std::span<const Model> catalogue();
std::vector<std::string> model_names();
const Model& find_model(std::string_view name);  // UserError «did you mean …»

}  // namespace trainyard::models
