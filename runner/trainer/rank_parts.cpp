#include "runner/trainer/rank_parts.h"

#include <cstddef>

#include "models/catalogue.h"
#include "runner/gradients/sliced_reducer.h"
#include "runner/optimizer/shared_optimizer.h"
#include "runner/trainer/strategy.h"

namespace trainyard::runner {

networks::Network build_stage(const experiments::Run& run, const models::InputShape& input,
                              const Connections& ranks, at::ScalarType dtype) {
  const auto layers = models::find_model(run.model).layers(run.hyperparameters, input).size();
  const StageLayers range = layers_of_stage(run.strategy, ranks.position.stage, layers);
  return networks::build_network(run.model, run.hyperparameters, input, run.seed, dtype,
                                 networks::LayerRange{range.first, range.last}, ranks.device);
}

Update make_update(const experiments::Optimizer& settings, const networks::Network& network,
                   Communicator& replicas) {
  const auto values = network.parameter_values();
  if (replicas.size() == 1) return {local_reducer(network.parameters()), make_optimizer(settings, values)};
  if (can_share(values)) {
    const SliceLayout layout(values, cut_into_buckets(values, default_bucket_bytes));
    Update update{sliced_reducer(network.parameters(), layout, replicas),
                  shared_optimizer(settings, values, layout, replicas)};
    if (update.reducer && update.optimizer) return update;
  }
  return {bucket_reducer(network.parameters(), replicas), make_optimizer(settings, values)};
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
