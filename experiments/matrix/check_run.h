// Whether the values of a run can be combined.
#pragma once

#include <string>

#include "experiments/config/problems.h"
#include "experiments/matrix/run_settings.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

// Reports what does not fit together, at the value to be changed. What is said of all runs ([defaults],
// --set) and means nothing for this one is taken back to the default instead: augmentation of texts,
// synchronised normalisation of a model without any.
void check_run(const RunSettings& settings, Run& run, Problems& problems);

// Why `model` cannot be trained on `dataset`; empty where it can.
std::string dataset_problem(const models::Model& model, const std::string& dataset);

}  // namespace trainyard::experiments
