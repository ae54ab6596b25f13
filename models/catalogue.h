// Catalogue of models: one row per model with task, hyper-parameters and graph. No LibTorch.
// - `experiments` checks experiment files against the catalogue and balances stages by the cost of the
//   nodes.
// - `models/networks` builds the networks. `trainyard list models` prints the catalogue.
//
// A model is a folder:
// - `models/NAME/NAME.cpp`: its graph and its row of the catalogue.
// - `models/NAME/NAME.py`: the same model in PyTorch. A test compares both.
// - `models/NAME/NAME_test.cpp`: its test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter.h"
#include "models/datasets/datasets.h"
#include "models/graph.h"
#include "models/tasks.h"

namespace trainyard::models {

// How an exported network reads texts.
struct TextForm {
  std::int64_t length = 0;  // tokens to which every text is padded or cut; 0: the longest of a step's batch
  std::int64_t most = 0;    // tokens to which longer texts are cut; 0: no limit
  // An input beside the tokens, of their size. mask: 1 at tokens and 0 at padding. types: all 0.
  struct Beside {
    bool mask = true;
    Dtype dtype = Dtype::int64;
  };
  std::vector<Beside> beside = {};
};

using Hyperparameters = std::map<std::string, Value>;  // by name; every parameter of the model has a value

struct Model {
  std::string name;                   // "mlp"
  std::string title;                  // "MLP"
  std::string task;                   // "classification": one of `all_tasks` in models/metrics.h
  std::vector<std::string> datasets;  // the data sets that it can be trained on, the default first
  std::vector<Parameter> hyperparameters;
  std::string about;  // one line
  // UserError if the model cannot have this input: the images are too small for its pooling layers.
  std::function<Graph(const Hyperparameters&, const InputShape&)> graph;
  // A network that PyTorch exported has these. They are empty for models of trainyard.
  std::string file = {};       // path
  std::string sha256 = {};     // of the file
  std::string initial = {};    // first weights: "exported", "seed" or "program"
  std::string data_task = {};  // of a network with its own loss: the task whose inputs and targets it reads
  OwnLoss own_loss = {};
  std::optional<TextForm> text_form = {};  // of a network that reads texts or pairs of texts
};

// The tasks of a model of trainyard: its own, and "regression" if it reads rows of a table.
std::vector<std::string> tasks_of(const Model& model);
// The task of a run on this data.
std::string task_of(const Model& model, const DataChoice& data);

std::span<const Model> catalogue();
std::vector<std::string> model_names();
const Model& find_model(std::string_view name);  // UserError if there is no such model

}  // namespace trainyard::models
