// Whether the runs of an experiment fit the devices there are: more ranks than devices, more threads than
// cores, and ranks that cannot talk as they are asked to.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "experiments/transport.h"
#include "models/counted.h"
#include "orchestrator/devices.h"

namespace trainyard::orchestrator {

namespace {

Location place_of(const experiments::Experiment& experiment, std::size_t run) {
  return run < experiment.strategy_locations.size() ? experiment.strategy_locations[run]
                                                    : Location{experiment.file.string()};
}

// The GPUs of each group of ranks that talk: the replicas of a stage, the stages of a replica.
std::vector<std::vector<std::string>> gpus_of_groups(const experiments::Strategy& strategy,
                                                     const std::vector<Device>& placed) {
  std::map<std::int64_t, std::vector<std::string>> by_stage, by_replica;
  for (std::int64_t replica = 0; replica < strategy.replicas; ++replica)
    for (std::int64_t stage = 0; stage < strategy.stages; ++stage) {
      const Device& device = placed[static_cast<std::size_t>(replica * strategy.stages + stage)];
      const std::string gpu = device.gpu.empty() ? "" : device.name;
      by_stage[stage].push_back(gpu);
      by_replica[replica].push_back(gpu);
    }
  std::vector<std::vector<std::string>> groups;
  for (const auto& dimension : {by_stage, by_replica})
    for (const auto& [index, gpus] : dimension) groups.push_back(gpus);
  return groups;
}

// One warning a place and text, not one a run.
template <typename Text>
std::vector<experiments::Problem> warnings(const experiments::Experiment& experiment, Text&& text_of) {
  std::vector<experiments::Problem> problems;
  std::set<std::string> told;
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const std::optional<std::string> text = text_of(experiment.runs[i]);
    const Location place = place_of(experiment, i);
    if (text && told.insert(to_text(place) + *text).second) problems.push_back({place, *text, true});
  }
  return problems;
}

}  // namespace

std::vector<experiments::Problem> device_problems(const experiments::Experiment& experiment,
                                                  const std::vector<Device>& devices) {
  return warnings(experiment, [&](const experiments::Run& run) -> std::optional<std::string> {
    const auto& strategy = run.strategy;
    if (strategy.world_size() <= static_cast<std::int64_t>(devices.size())) return std::nullopt;
    return "strategy \"" + strategy.name + "\" has " + models::counted(strategy.world_size(), "rank") +
           " on " + models::counted(devices.size(), "device") +
           ": ranks share devices, and its times are marked and enter no verdict";
  });
}

std::vector<experiments::Problem> thread_problems(const experiments::Experiment& experiment,
                                                  std::size_t cores) {
  return warnings(experiment, [&](const experiments::Run& run) -> std::optional<std::string> {
    if (run.threads.value_or(0) <= static_cast<std::int64_t>(cores)) return std::nullopt;
    return "strategy \"" + run.strategy.name + "\" asks for " + models::counted(*run.threads, "thread") +
           " × " + models::counted(run.strategy.world_size(), "rank") + " on " +
           models::counted(cores, "core") + ": the threads of one rank alone wait for one another";
  });
}

void check_transport(const experiments::Experiment& experiment, const std::vector<Device>& devices,
                     const std::string& nccl) {
  const experiments::NcclSupport support = experiments::nccl_support(nccl);
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const auto& strategy = experiment.runs[i].strategy;
    if (strategy.foreign()) continue;
    try {
      for (const auto& gpus : gpus_of_groups(strategy, place_ranks(strategy, devices)))
        experiments::transport_of(experiment.machine.communicator, gpus, support);
    } catch (const UserError& error) {
      throw UserError("strategy \"" + strategy.name + "\": " + error.what(), "", place_of(experiment, i));
    }
  }
}

void check_precision(const experiments::Experiment& experiment, const std::vector<Device>& devices) {
  const bool on_cores =
      std::ranges::all_of(devices, [](const Device& device) { return device.name.starts_with("cpu"); });
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const experiments::Run& run = experiment.runs[i];
    if (run.precision != "tf32" || run.strategy.foreign() || !on_cores) continue;
    throw UserError("precision \"tf32\" is one of GPUs, and runs train on CPU cores here",
                    "use \"float32\", \"bfloat16\" or \"float16\"", place_of(experiment, i));
  }
}

}  // namespace trainyard::orchestrator
