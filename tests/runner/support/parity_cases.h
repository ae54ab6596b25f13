// The models of the parity table in small, with random samples of their kind.
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
  bool batch_norm =
      false;  // then micro-batches are not one batch, and only the virtual mesh says what is right
  double learning_rate = 0.05;
};

ParityModel parity_model(const std::string& name);

// SGD with momentum and weight decay; two stages are cut at a place that depends on the
// schedule.
experiments::Run parity_run(const ParityModel& model, const experiments::Strategy& strategy);

// `samples` random ones that the model takes: the same in every call.
std::unique_ptr<Dataset> data_of(const ParityModel& model, std::int64_t samples, at::ScalarType dtype,
                                 bool channels_last);

}  // namespace trainyard::runner::testing
