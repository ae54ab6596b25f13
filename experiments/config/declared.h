// Models, data sets and metrics that a file declares.
// - [model.NAME] with `export` is a network that PyTorch exported, with a task. All strategies can train it.
// - [model.NAME] without `export` has a title, and optionally a task and parameters. [dataset.NAME] has a
//   title. They are rows like those of the catalogue, but without graph and files. Only a strategy with a
//   command can train them.
// - [metric.NAME] has a unit, a direction and a margin. Only a strategy with a command can record it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/config/diagnostics.h"
#include "experiments/config/toml_tree.h"
#include "experiments/design/own_metric.h"
#include "models/catalogue.h"
#include "models/datasets/datasets.h"

namespace trainyard::experiments {

struct Declared {
  std::vector<models::Model> models;  // their parameters are hyper-parameters
  std::vector<models::Dataset> datasets;
  std::vector<std::string> refused;  // names of exported networks whose error is reported
  std::vector<OwnMetric> metrics;
  std::map<std::string, double> margins;  // of metrics, in their unit
};

// Reads the declarations of the whole file, before anything else is read. Errors are reported, and the wrong
// parts are left out.
Declared read_declared(const TomlNode& root, Diagnostics& problems);

// Whether the value of `initial` is a file with weights. It is then a key of the run, also for exported networks.
bool names_weights(const TomlNode& item);

// `initial` of all exported networks: `--set initial=seed`.
void set_initial(const TomlNode& item, Declared& declared, Diagnostics& problems);

// Whether the key declares a model. Tables of other models do not have such keys.
bool declares_model(const std::string& key);

// Rows of the catalogue and declared rows. Null if there is no such row.
const models::Model* model_or_null(std::string_view name, const Declared& declared);
const models::Dataset* declared_dataset(std::string_view name, const Declared& declared);
std::vector<std::string> model_names(const Declared& declared);
std::vector<std::string> dataset_names(const Declared& declared);

// Whether only the user's own program can train the model; false for models of the catalogue and for exported
// networks.
bool is_declared(const models::Model& model);
bool is_exported(const models::Model& model);

}  // namespace trainyard::experiments
