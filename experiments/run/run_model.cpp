#include "experiments/run/run_model.h"

namespace trainyard::experiments {

const models::Model& model_of(const Run& run) {
  return models::find_model(run.model);
}

models::Graph graph_of(const Run& run, const models::InputShape& input) {
  return model_of(run).graph(run.hyperparameters, input);
}

}  // namespace trainyard::experiments
