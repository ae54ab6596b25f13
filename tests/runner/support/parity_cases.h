// Small versions of the models of the parity table, with random samples. Those whose name begins with
// "exported-" are networks of PyTorch (tests/runner/parity/exported_networks.py).
#pragma once

#include <cstdint>
#include <filesystem>
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
  std::string exported_task = {};  // of a network of PyTorch: "classification", "translation"
  std::string dataset = {};        // "csv" for rows of a table, whose targets are numbers
};

ParityModel parity_model(const std::string& name);

// Exports the networks of PyTorch if this has not been done. False without a Python with torch.
bool have_exported_networks();
// The network `name` with dropout, in this type. Requires `have_exported_networks`.
std::filesystem::path exported_network(const std::string& name, at::ScalarType dtype);

// The task of the model.
std::string task_of(const ParityModel& model);

// A run with SGD, momentum and weight decay. The boundary of two stages depends on the strategy: "mp" has the
// automatic split. Tensor parts split the layers of a large batch, or with split = "given" as many as possible. A network of PyTorch is the one with parameters of `dtype`.
experiments::Run parity_run(const ParityModel& model, const experiments::Strategy& strategy,
                            at::ScalarType dtype = at::kDouble);
// The run with the network of the file `exported` in place of the model's.
experiments::Run with_network(experiments::Run run, const ParityModel& model,
                              const std::filesystem::path& exported);

// `samples` random samples for the model. They are the same in every call.
std::unique_ptr<Dataset> data_of(const ParityModel& model, std::int64_t samples, at::ScalarType dtype,
                                 bool channels_last);

}  // namespace trainyard::runner::testing
