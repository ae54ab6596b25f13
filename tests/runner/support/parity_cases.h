// Small versions of the models of the parity table, with random samples.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "experiments/run/run.h"
#include "models/datasets/datasets.h"
#include "runner/data/dataset.h"

namespace trainyard::runner::testing {

struct ParityModel {
  std::string name;
  models::Hyperparameters hyperparameters;  // complete
  models::InputShape input;
  bool batch_norm = false;  // with it, results depend on micro-batches
  double learning_rate = 0.05;
};

ParityModel parity_model(const std::string& name);

// A run with SGD, momentum and weight decay. The boundary of two stages depends on the strategy.
experiments::Run parity_run(const ParityModel& model, const experiments::Strategy& strategy);

// `samples` random samples for the model. They are the same in every call.
std::unique_ptr<Dataset> data_of(const ParityModel& model, std::int64_t samples, at::ScalarType dtype,
                                 bool channels_last);

}  // namespace trainyard::runner::testing
