// The model of a run.
#pragma once

#include "experiments/run/run.h"
#include "models/catalogue.h"
#include "models/graph.h"

namespace trainyard::experiments {

// UserError if there is no such model.
const models::Model& model_of(const Run& run);

// The graph of the run's model. UserError if the model does not accept this input.
models::Graph graph_of(const Run& run, const models::InputShape& input);

}  // namespace trainyard::experiments
