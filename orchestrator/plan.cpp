#include "orchestrator/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "db/queries.h"
#include "experiments/run.h"

namespace trainyard::orchestrator {

std::size_t Plan::to_run() const {
  return static_cast<std::size_t>(std::count_if(
      runs.begin(), runs.end(), [](const PlannedRun& run) { return run.state != PlanState::finished; }));
}

std::optional<double> Plan::expected_seconds() const {
  double sum = 0;
  for (const PlannedRun& run : runs) {
    if (run.state == PlanState::finished) continue;
    if (!run.expected_seconds) return std::nullopt;
    sum += *run.expected_seconds;
  }
  return sum;
}

std::string kind_of(const experiments::Run& run) {
  return run.model + " " + run.strategy.name + " " + std::to_string(run.epochs);
}

std::size_t distinct_devices(const std::vector<Device>& devices) {
  std::set<std::string> names;
  for (const Device& device : devices) names.insert(device.name);
  return names.size();
}

namespace {

PlannedRun placed(const experiments::Run& run, const std::vector<Device>& devices,
                  const experiments::Circumstances& machine) {
  PlannedRun planned;
  planned.run = run;
  planned.key = experiments::run_key(run);
  planned.devices = place_ranks(run.strategy, devices);
  planned.circumstances = machine;
  const auto ranks = static_cast<double>(planned.devices.size());
  const auto used = static_cast<double>(distinct_devices(planned.devices));
  planned.devices_shared = ranks > used;
  planned.circumstances.ranks_per_device = ranks / used;
  planned.circumstances.threads_per_rank =
      static_cast<int>(run.threads.value_or(static_cast<std::int64_t>(planned.devices.front().cores.size())));
  return planned;
}

void mark_finished(std::vector<PlannedRun>& runs, const db::Database& database) {
  std::map<std::string, std::string> hash_by_key;
  for (const PlannedRun& run : runs)
    hash_by_key[run.key] = experiments::circumstances_hash(run.circumstances);
  const db::Finished finished = db::finished_runs(database, hash_by_key);
  const std::set<std::string> here(finished.here.begin(), finished.here.end());
  const std::set<std::string> elsewhere(finished.elsewhere.begin(), finished.elsewhere.end());
  for (PlannedRun& run : runs) {
    if (here.count(run.key) != 0)
      run.state = PlanState::finished;
    else if (elsewhere.count(run.key) != 0)
      run.state = PlanState::done_elsewhere;
  }
}

void expect_seconds(std::vector<PlannedRun>& runs, const db::Database& database) {
  const auto seconds = db::median_run_seconds(database);
  for (PlannedRun& run : runs)
    if (const auto found = seconds.find(kind_of(run.run)); found != seconds.end())
      run.expected_seconds = found->second;
}

// All values but the strategy's: runs with equal text are arms of the same comparison.
std::string arms_group(experiments::Run run) {
  run.strategy = {};
  run.global_batch = 0;  // with a batch for each replica it hangs on the strategy
  for (const char* axis : {"strategy", "replicas", "stages", "stage_split", "schedule", "micro_batches"})
    run.axes.erase(axis);
  return experiments::to_json(run).dump();
}

}  // namespace

Plan make_plan(const experiments::Experiment& experiment, const std::vector<Device>& devices,
               const experiments::Circumstances& machine, const db::Database* database) {
  Plan plan;
  plan.devices = devices;
  for (const auto& run : experiment.runs) plan.runs.push_back(placed(run, devices, machine));
  if (database != nullptr) {
    mark_finished(plan.runs, *database);
    expect_seconds(plan.runs, *database);
  }
  return plan;
}

std::vector<std::size_t> execution_order(const Plan& plan) {
  std::map<std::string, std::size_t> first_of_group;  // index of the first run of the group in the file
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const std::size_t group = first_of_group.emplace(arms_group(plan.runs[i].run), i).first->second;
    if (plan.runs[i].state != PlanState::finished) order.emplace_back(group, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::size_t> indices;
  indices.reserve(order.size());
  for (const auto& [group, index] : order) indices.push_back(index);
  return indices;
}

}  // namespace trainyard::orchestrator
