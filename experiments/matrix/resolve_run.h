// Resolution of one point of the matrix or one [[include]] row to a complete run. It checks that settings,
// mesh and schedule fit together.
#pragma once

#include <string>

#include "experiments/config/config.h"
#include "experiments/config/diagnostics.h"
#include "experiments/run/keys.h"
#include "experiments/run/run.h"
#include "models/catalogue.h"

namespace trainyard::experiments {

// One point of the matrix, or one [[include]] row.
struct MatrixPoint {
  Location at;      // for problems without a single value
  Settings values;  // by axis; `model` and `strategy` are known names
};

// The settings of one run. Precedence: matrix or row, --set, [strategy.*], [model.*], [defaults].
class RunSettings {
 public:
  // Keeps references to both arguments.
  RunSettings(const ExperimentConfig& config, const MatrixPoint& point);

  const models::Model& model() const { return *model_; }
  // Null if the data set is one of trainyard's.
  const models::Dataset* declared_dataset(const std::string& name) const {
    return experiments::declared_dataset(name, config_.declared);
  }
  const std::string& strategy() const { return strategy_; }  // its label
  const StrategyKind& kind() const { return *kind_; }

  const Setting* find(const std::string& name) const;  // null if the file has none
  // As `find`, but without [defaults] and --set. Those apply only to the runs that have a use for them.
  const Setting* find_own(const std::string& name) const;
  Location place(const std::string& name) const;  // location of the setting, or of the point

 private:
  bool has_use_for(const std::string& name) const;

  const ExperimentConfig& config_;
  const MatrixPoint& point_;
  const models::Model* model_;
  std::string strategy_;
  const StrategyKind* kind_;
};

// The run with all keys resolved, but without data. Reports impossible combinations at the value to change.
Run resolve(const ExperimentConfig& config, const MatrixPoint& point, Diagnostics& problems);

// Why `model` cannot be trained on `dataset`. Empty if it can.
std::string dataset_problem(const models::Model& model, const std::string& dataset);

}  // namespace trainyard::experiments
