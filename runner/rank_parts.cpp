#include "runner/rank_parts.h"

#include <cstddef>

#include "models/catalogue.h"
#include "runner/strategy.h"

namespace trainyard::runner {

networks::Network build_stage(const experiments::Run& run, const models::InputShape& input,
                              const Connections& ranks, at::ScalarType dtype) {
  const auto layers = models::find_model(run.model).layers(run.hyperparameters, input).size();
  const StageLayers range = layers_of_stage(run.strategy, ranks.position.stage, layers);
  return networks::build_network(run.model, run.hyperparameters, input, run.seed, dtype,
                                 networks::LayerRange{range.first, range.last}, ranks.device);
}

std::unique_ptr<Reducer> make_reducer(const networks::Network& network, Communicator& replicas) {
  return replicas.size() == 1 ? local_reducer(network.parameters())
                              : bucket_reducer(network.parameters(), replicas);
}

int micro_batches_of(const experiments::Run& run) {
  return static_cast<int>(run.strategy.micro_batches);
}

std::vector<Action> training_actions(const experiments::Run& run, const Connections& ranks) {
  const int micro_batches = micro_batches_of(run);
  const Schedule once = training_schedule(run.strategy.schedule, ranks.mesh.stages, micro_batches);
  return in_turns(once, micro_batches, static_cast<int>(run.gradient_accumulation))
      .at(static_cast<std::size_t>(ranks.position.stage));
}

std::vector<Action> forward_actions(const Connections& ranks, int micro_batches) {
  return evaluation_schedule(ranks.mesh.stages, micro_batches)
      .at(static_cast<std::size_t>(ranks.position.stage));
}

}  // namespace trainyard::runner
