// Whether the runs of an experiment fit the devices there are: more ranks than devices, more threads per rank
// than cores, and ranks that cannot talk as they are asked to.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/counted.h"
#include "base/joined.h"
#include "experiments/protocol/transport.h"
#include "orchestrator/resources/devices.h"

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
std::vector<Problem> warnings(const experiments::Experiment& experiment, Text&& text_of) {
  std::vector<Problem> problems;
  std::set<std::string> told;
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const std::optional<std::string> text = text_of(experiment.runs[i]);
    const Location place = place_of(experiment, i);
    if (text && told.insert(to_text(place) + *text).second) problems.push_back({place, *text, true});
  }
  return problems;
}

}  // namespace

std::vector<Problem> device_problems(const experiments::Experiment& experiment,
                                     const std::vector<Device>& devices) {
  return warnings(experiment, [&](const experiments::Run& run) -> std::optional<std::string> {
    const auto& strategy = run.strategy;
    const std::vector<Device> own = devices_for(run, devices, experiment.machine.devices);
    if (strategy.world_size() <= static_cast<std::int64_t>(own.size())) return std::nullopt;
    std::string on = models::counted(own.size(), "device");
    if (run.threads && own.front().gpu.empty() && !own.front().cores.empty())
      on += " of " + models::counted(own.front().cores.size(), "core");
    return "strategy \"" + strategy.name + "\" has " + models::counted(strategy.world_size(), "rank") +
           " on " + on + ": ranks share devices, and its times are marked and enter no verdict";
  });
}

void check_threads(const experiments::Experiment& experiment, std::size_t cores) {
  std::set<std::int64_t> too_many;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const std::int64_t threads = experiment.runs[i].threads.value_or(0);
    if (std::cmp_less_equal(threads, cores)) continue;
    too_many.insert(threads);
    if (!first) first = i;
  }
  if (!first) return;
  const bool here = experiment.machine.on_this_host();
  const std::string there = models::counted(cores, "core");
  throw UserError("a rank needs a core for each of its threads, and threads = " +
                      models::joined(too_many, [](std::int64_t count) { return std::to_string(count); }) +
                      (here ? ", but this process may use only " + there
                            : ", but `[machine] cpus_per_task` gives a rank " + there),
                  "lower threads to at most " + std::to_string(cores) + ", or " +
                      (here ? "train with more cores: another machine, or a wider CPU affinity or quota"
                            : "raise cpus_per_task to " + std::to_string(*too_many.rbegin())),
                  *first < experiment.thread_locations.size() ? experiment.thread_locations[*first]
                                                              : place_of(experiment, *first));
}

void check_transport(const experiments::Experiment& experiment, const std::vector<Device>& devices,
                     const std::string& nccl) {
  const experiments::NcclSupport support = experiments::nccl_support(nccl);
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const auto& strategy = experiment.runs[i].strategy;
    if (strategy.foreign()) continue;
    try {
      const auto own = devices_for(experiment.runs[i], devices, experiment.machine.devices);
      for (const auto& gpus : gpus_of_groups(strategy, place_ranks(strategy, own)))
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
