#include "runner/trainer/resolved_run.h"

#include <utility>

#include "base/error.h"
#include "base/plain_file.h"
#include "base/sha256.h"
#include "experiments/run/run_model.h"
#include "models/networks/safetensors.h"

namespace trainyard::runner {

namespace {

using networks::NamedParameter;

// Running statistics that the file does not have keep their values.
void take_weights(const networks::Network& network, const experiments::Run& run) {
  constexpr std::size_t most_bytes = std::size_t{1} << 36U;
  const PlainContent content = plain_content(run.initial, most_bytes);
  if (!content.problem.empty()) throw UserError(run.initial + ": cannot be read: " + content.problem);
  if (!run.initial_sha256.empty() && sha256_hex(content.text) != run.initial_sha256)
    throw UserError(run.initial + " has changed since the run was planned",
                    "put the file back, or plan the experiment again");
  const std::vector<NamedParameter> values = networks::parse_safetensors(content.text, run.initial);
  for (const NamedParameter& to : network.parameters())
    if (!networks::take_value(to, values))
      throw UserError(run.initial + " has no values of the right shape for " + to.name,
                      "name a file with the weights of this network, of the same sizes");
  for (const NamedParameter& to : network.buffers()) networks::take_value(to, values);
}

}  // namespace

networks::Network first_network(const ResolvedRun& resolved, const models::InputShape& input,
                                const networks::Initialisation& start,
                                const std::optional<models::NodeRange>& stage, std::optional<int> part) {
  models::Graph graph = resolved.graph(input);
  if (part) graph = models::graph_of_part(graph, experiments::tensor_split_of(resolved.run), *part);
  networks::Network network = networks::build_network(graph, start, stage);
  if (!resolved.run.initial.empty()) take_weights(network, resolved.run);
  return network;
}

ResolvedRun resolve(const experiments::Run& run) {
  models::Model model = experiments::model_of(run);
  const Task& task =
      model.own_loss ? task_with_own_loss(model.data_task, model.own_loss) : find_task(model.task);
  return {run,
          std::move(model),
          task,
          find_precision(run.precision),
          find_augmentation(run.augmentation),
          find_schedule(run.optimizer.schedule),
          find_sampling(run.sampler)};
}

}  // namespace trainyard::runner
