// Models and data sets that a file declares for programs of the user's: [model.NAME] with a title, and
// perhaps a task and parameters; [dataset.NAME] with a title. They are rows like the catalogue's, but without
// layers and without files: only a strategy with a command can train them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/config/diagnostics.h"
#include "experiments/config/toml_tree.h"
#include "models/catalogue.h"
#include "models/datasets/datasets.h"

namespace trainyard::experiments {

struct Declared {
  std::vector<models::Model> models;  // each with its parameters as hyper-parameters
  std::vector<models::Dataset> datasets;
};

// Of the whole file, before anything else of it is read. Reports what is wrong with a declaration, and leaves
// out its part.
Declared read_declared(const TomlNode& root, Diagnostics& problems);

// Keys that declare a model: no other table of a model has them.
bool declares_model(const std::string& key);

// The catalogue's rows, and what is declared beside them. Null where there is no such row.
const models::Model* model_or_null(std::string_view name, const Declared& declared);
const models::Dataset* declared_dataset(std::string_view name, const Declared& declared);
std::vector<std::string> model_names(const Declared& declared);
std::vector<std::string> dataset_names(const Declared& declared);

// A model that the file declares, and none of trainyard's.
bool is_declared(const models::Model& model);

}  // namespace trainyard::experiments
