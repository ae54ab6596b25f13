// What a rank trains with, as it follows from the run and the rank's place in the mesh.
#pragma once

#include <memory>
#include <vector>

#include "experiments/run/run.h"
#include "models/networks/network.h"
#include "runner/gradients/reducer.h"
#include "runner/optimizer/optimizer.h"
#include "runner/schedule/schedule.h"
#include "runner/trainer/connections.h"

namespace trainyard::runner {

// The layers of its stage, on its device. UserError where the strategy does not fit the model.
networks::Network build_stage(const experiments::Run& run, const models::InputShape& input,
                              const Connections& ranks, at::ScalarType dtype);

// From the gradients of `network` on each replica to its next parameters. Where replicas share memory, each
// does so for its slices (runner/gradients/slices.h). Collective.
struct Update {
  std::unique_ptr<Reducer> reducer;
  std::unique_ptr<Optimizer> optimizer;
};
Update make_update(const experiments::Optimizer& settings, const networks::Network& network,
                   Communicator& replicas);

int micro_batches_of(const experiments::Run& run);

// How its stage trains in a step: as many turns as gradients accumulate over. And how it evaluates.
std::vector<Action> training_actions(const experiments::Run& run, const Connections& ranks);
std::vector<Action> forward_actions(const Connections& ranks, int micro_batches);

}  // namespace trainyard::runner
