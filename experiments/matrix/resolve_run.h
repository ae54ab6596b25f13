// From one point of the matrix, or one added row, to a complete run: settings, mesh and schedule, and whether
// they fit together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "experiments/config/config.h"
#include "experiments/config/diagnostics.h"
#include "experiments/run/keys.h"
#include "experiments/run/run.h"
#include "models/catalogue.h"

namespace trainyard::experiments {

// What the file says of one run: of each key the strongest setting. Matrix or row, --set, [strategy.*],
// [model.*], [defaults], else the key's default.

// One point of the matrix, or one added row.
struct MatrixPoint {
  Location at;      // for problems that no single value has
  Settings values;  // by axis; `model` is one of the catalogue's or a declared one, `strategy` the sheet's
};

class RunSettings {
 public:
  // Both are kept by reference.
  RunSettings(const ExperimentConfig& sheet, const MatrixPoint& point);

  const models::Model& model() const { return *model_; }
  // Null where the data set is one of trainyard's.
  const models::Dataset* declared_dataset(const std::string& name) const {
    return experiments::declared_dataset(name, sheet_.declared);
  }
  const std::string& strategy() const { return strategy_; }  // its label
  const StrategyKind& kind() const { return *kind_; }

  const Setting* find(const std::string& name) const;  // null where the file has none
  // As `find`, but not what is said of all runs together: [defaults], and --set. What stands there is meant
  // for the runs that have a use for it.
  const Setting* find_own(const std::string& name) const;
  Location place(const std::string& name) const;  // of the setting, else of the point

 private:
  bool has_use_for(const std::string& name) const;
  const Setting* find_in_tables(const std::string& name) const;

  const ExperimentConfig& sheet_;
  const MatrixPoint& point_;
  const models::Model* model_;
  std::string strategy_;
  const StrategyKind* kind_;
};

// Every key resolved; data not yet found. Reports what cannot be combined, at the value to be changed.
Run resolve(const ExperimentConfig& sheet, const MatrixPoint& point, Diagnostics& problems);

// Why `model` cannot be trained on `dataset`; empty where it can.
std::string dataset_problem(const models::Model& model, const std::string& dataset);

}  // namespace trainyard::experiments
