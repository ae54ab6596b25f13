// Resolves one point of the matrix, or one added row, to a complete run: settings, mesh and schedule. Checks
// that they fit together.
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

// One point of the matrix, or one added row.
struct MatrixPoint {
  Location at;      // for problems that do not belong to one value
  Settings values;  // by axis; `model` is in the catalogue or declared, `strategy` is in the sheet
};

// The settings of one run. The strongest one counts: matrix or row, --set, [strategy.*], [model.*],
// [defaults], else the key's default.
class RunSettings {
 public:
  // Both are kept by reference.
  RunSettings(const ExperimentConfig& sheet, const MatrixPoint& point);

  const models::Model& model() const { return *model_; }
  // Null if the data set is one of trainyard's.
  const models::Dataset* declared_dataset(const std::string& name) const {
    return experiments::declared_dataset(name, sheet_.declared);
  }
  const std::string& strategy() const { return strategy_; }  // its label
  const StrategyKind& kind() const { return *kind_; }

  const Setting* find(const std::string& name) const;  // null if the file has none
  // As `find`, but without [defaults] and --set: those are for all runs that can use the key.
  const Setting* find_own(const std::string& name) const;
  Location place(const std::string& name) const;  // of the setting, or else of the point

 private:
  bool has_use_for(const std::string& name) const;
  const Setting* find_in_tables(const std::string& name) const;

  const ExperimentConfig& sheet_;
  const MatrixPoint& point_;
  const models::Model* model_;
  std::string strategy_;
  const StrategyKind* kind_;
};

// Resolves every key. Does not look for the data yet. Reports values that cannot be combined, at the value
// to be changed.
Run resolve(const ExperimentConfig& sheet, const MatrixPoint& point, Diagnostics& problems);

// Why `model` cannot be trained on `dataset`. Empty if it can.
std::string dataset_problem(const models::Model& model, const std::string& dataset);

}  // namespace trainyard::experiments
