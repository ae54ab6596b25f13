#include "orchestrator/plan/plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "db/queries/evidence.h"
#include "db/queries/queries.h"
#include "experiments/design/cell_place.h"
#include "experiments/run/keys.h"
#include "experiments/run/run.h"
#include "orchestrator/plan/membership.h"

namespace trainyard::orchestrator {

bool Plan::waits(const PlannedRun& run) const {
  return run.state == PlanState::to_run || (run.state == PlanState::done_elsewhere && !reuse);
}

std::size_t Plan::to_run() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(runs, [this](const PlannedRun& run) { return waits(run); }));
}

std::size_t Plan::in_state(PlanState state) const {
  return static_cast<std::size_t>(std::ranges::count(runs, state, &PlannedRun::state));
}

std::size_t Plan::finished_before() const {
  return runs.size() - to_run() - in_state(PlanState::left_out) - in_state(PlanState::not_needed);
}

std::optional<double> Plan::expected_seconds() const {
  double sum = 0;
  for (const PlannedRun& run : runs) {
    if (!waits(run)) continue;
    if (!run.expected_seconds) return std::nullopt;
    sum += *run.expected_seconds;
  }
  return sum;
}

namespace {

PlannedRun placed(const experiments::Run& run, std::string key, const std::vector<Device>& host,
                  std::optional<int> wanted, const experiments::Circumstances& machine,
                  bool placed_by_launcher) {
  PlannedRun planned;
  planned.run = run;
  planned.key = std::move(key);
  planned.circumstances = machine;
  for (const auto& [name, value] : run.strategy.environment)
    if (experiments::may_change_speed(name)) planned.circumstances.environment[name] = printable_line(value);
  if (placed_by_launcher) {
    planned.devices.assign(static_cast<std::size_t>(run.strategy.world_size()), host.front());
    planned.circumstances.threads_per_rank = static_cast<int>(run.threads.value_or(machine.threads_per_rank));
    return planned;
  }
  planned.devices = place_ranks(run.strategy, devices_for(run, host, wanted));
  const auto ranks = static_cast<double>(planned.devices.size());
  const auto used = static_cast<double>(distinct_devices(planned.devices));
  const bool cores_shared = widen_to_threads(planned.devices, host, run.threads.value_or(1));
  planned.devices_shared = ranks > used || cores_shared;
  planned.circumstances.ranks_per_device = ranks / used;
  const Device& first = planned.devices.front();
  const std::size_t threads = first.gpu.empty() ? first.cores.size() : 1;  // the GPU computes
  planned.circumstances.threads_per_rank =
      static_cast<int>(run.threads.value_or(static_cast<std::int64_t>(threads)));
  return planned;
}

// Applies `[machine] devices`: all runs together lease at most `wanted` devices as wide as the widest rank.
void keep_to(std::size_t wanted, Plan& plan) {
  std::size_t widest = 0;
  for (const PlannedRun& run : plan.runs)
    if (run.devices.front().gpu.empty()) widest = std::max(widest, run.devices.front().cores.size());
  if (widest > 0 && wanted * widest < plan.devices.size()) plan.devices.resize(wanted * widest);
}

void mark_here(PlannedRun& run, const db::Finished& finished, bool could_count, bool retrain_times) {
  run.state = PlanState::finished;
  const auto problem = finished.times_problems.find(run.key);
  if (problem == finished.times_problems.end() || !could_count) return;
  run.times_problem = problem->second;
  if (retrain_times) run.state = PlanState::to_run;
}

// `could_count`: times may count under this [machine].
void mark_finished(std::vector<PlannedRun>& runs, const db::Database& database, bool could_count,
                   bool retrain_times) {
  std::map<std::string, std::string> hash_by_key;
  for (const PlannedRun& run : runs)
    hash_by_key[run.key] = experiments::circumstances_hash(run.circumstances);
  const db::Finished finished = db::finished_runs(database, hash_by_key);
  const std::set<std::string> here(finished.here.begin(), finished.here.end());
  const std::set<std::string> elsewhere(finished.elsewhere.begin(), finished.elsewhere.end());
  for (PlannedRun& run : runs) {
    if (here.count(run.key) != 0)
      mark_here(run, finished, could_count, retrain_times);
    else if (elsewhere.count(run.key) != 0)
      run.state = PlanState::done_elsewhere;
  }
}

// Kind of a run, as in `db::median_run_seconds`: "mlp ddp 10 mnist all".
std::string kind_of(const experiments::Run& run) {
  const auto& cap = run.data.train_samples;
  return fmt::format("{} {} {} {} {}", run.model, run.strategy.name, run.epochs, run.data.dataset,
                     cap ? std::to_string(*cap) : "all");
}

void expect_seconds(std::vector<PlannedRun>& runs, const db::Database& database) {
  const auto seconds = db::median_run_seconds(database);
  for (PlannedRun& run : runs)
    if (const auto found = seconds.find(kind_of(run.run)); found != seconds.end())
      run.expected_seconds = found->second;
}

// Pair of a run. If strategies are compared, their own keys are left out, because each strategy may have its
// own mesh.
experiments::CellPlace::Pair pair_of(const experiments::Run& run, const experiments::Compare& compare) {
  experiments::CellPlace place = experiments::cell_place(run, compare);
  if (compare.axis == "strategy")
    std::erase_if(place.further, [](const auto& value) {
      const experiments::Key* key = experiments::key_or_null(value.first);
      return key != nullptr && key->place == experiments::KeyPlace::strategy;
    });
  return place.cell_and_pair();
}

// Pseudo-random number from seed and run key: SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t drawn(std::uint64_t seed, const std::string& key) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + std::stoull(key, nullptr, 16);
  state = (state ^ (state >> 30U)) * 0xbf58476d1ce4e5b9U;
  state = (state ^ (state >> 27U)) * 0x94d049bb133111ebU;
  return state ^ (state >> 31U);
}

std::vector<std::size_t> paired_order(const experiments::Experiment& experiment,
                                      const std::vector<PlannedRun>& runs) {
  experiments::Compare compare =
      experiment.compare.empty() ? experiments::Compare{} : experiment.compare.front();
  // pairs are per seed, even if the experiment does not pair by seed
  if (std::ranges::find(compare.pair, "seed") == compare.pair.end()) compare.pair.emplace_back("seed");
  std::map<experiments::CellPlace::Pair, std::size_t> first_of_pair;  // index of its first run
  std::vector<std::tuple<std::size_t, std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t pair = first_of_pair.emplace(pair_of(runs[i].run, compare), i).first->second;
    order.emplace_back(pair, drawn(experiment.data_seed, runs[i].key), i);
  }
  std::ranges::sort(order);
  std::vector<std::size_t> indices;
  indices.reserve(order.size());
  for (const auto& each : order) indices.push_back(std::get<2>(each));
  return indices;
}

void keep_failed(Plan& plan, const db::Database& database) {
  const auto failed = db::keys_with_status(database, "failed");
  for (PlannedRun& run : plan.runs)
    if (plan.waits(run) && !failed.contains(run.key)) run.state = PlanState::left_out;
}

void reattach(Plan& plan, const std::vector<LiveAttempt>& live) {
  for (const LiveAttempt& attempt : live)
    for (PlannedRun& run : plan.runs)
      if (run.key == attempt.key && run.state != PlanState::left_out) {
        run.state = PlanState::to_run;
        run.adopts = attempt.attempt;
      }
}

}  // namespace

Plan make_plan(const experiments::Experiment& experiment, const std::vector<Device>& devices,
               const experiments::Circumstances& machine, const db::Database* database,
               const PlanOptions& options, const std::vector<LiveAttempt>& live) {
  Plan plan;
  plan.devices = devices;
  plan.reuse = options.reuse;
  const experiments::Machine& where = experiment.machine;
  plan.placed_by_launcher = !where.on_this_host();
  plan.one_at_a_time = where.one_at_a_time();
  plan.runs.reserve(experiment.runs.size());
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const experiments::Run& run = experiment.runs[i];
    std::string key = experiment.keys.empty() ? experiments::run_key(run) : experiment.keys[i];
    plan.runs.push_back(
        placed(run, std::move(key), devices, where.devices, machine, plan.placed_by_launcher));
  }
  if (where.devices) keep_to(static_cast<std::size_t>(*where.devices), plan);
  if (database != nullptr) {
    mark_finished(plan.runs, *database, where.on_this_host() && where.exclusive_host, options.retrain_times);
    expect_seconds(plan.runs, *database);
    if (options.failed_only) keep_failed(plan, *database);
  }
  reattach(plan, live);
  if (database != nullptr)
    for (PlannedRun& run : plan.runs)
      if (plan.waits(run)) shrink_to_devices(run, plan.placed_by_launcher, shared_tasks(where), *database);
  if (database != nullptr) choose_probes(plan, *database);
  plan.order.resize(plan.runs.size());
  std::iota(plan.order.begin(), plan.order.end(), 0);
  if (options.order == Order::paired) plan.order = paired_order(experiment, plan.runs);
  return plan;
}

void leave_out_unneeded(Plan& plan, const Needed& needed) {
  plan.until_decided = true;
  for (PlannedRun& run : plan.runs) {
    if (plan.waits(run) && !run.adopts && needed.unneeded.contains(run.key))
      run.state = PlanState::not_needed;
    if (run.times_problem != db::times_not_needed || needed.lack_times.contains(run.key)) continue;
    run.times_problem.clear();
    run.state = PlanState::finished;
  }
}

std::vector<std::size_t> execution_order(const Plan& plan) {
  std::vector<std::size_t> indices;
  for (const std::size_t index : plan.order)
    if (plan.waits(plan.runs[index])) indices.push_back(index);
  return indices;
}

namespace {

// Equal for two runs that differ only in the seed.
std::string arm_of(experiments::Run run) {
  run.seed = 0;
  return experiments::run_key(run);
}

// False for a user's own program, and for an arm that only repeats another one.
bool can_be_probed(const experiments::Strategy& strategy) {
  return !strategy.foreign() && !strategy.independent();
}

}  // namespace

void choose_probes(Plan& plan, const db::Database& database) {
  const auto probed = db::probed_runs(database);
  std::set<std::string> arms;  // checked before or in this plan
  for (const PlannedRun& run : plan.runs) {
    if (run.state == PlanState::left_out || run.state == PlanState::not_needed)
      continue;                                            // its check may never reach the report
    const auto found = probed.lower_bound({run.key, ""});  // most runs have none: avoid hashing
    if (found == probed.end() || found->first != run.key) continue;
    if (probed.contains({run.key, experiments::circumstances_hash(run.circumstances)}))
      arms.insert(arm_of(run.run));
  }
  for (PlannedRun& run : plan.runs)
    run.probe = plan.waits(run) && can_be_probed(run.run.strategy) && arms.insert(arm_of(run.run)).second;
}

}  // namespace trainyard::orchestrator
