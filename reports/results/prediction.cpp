#include "reports/results/prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "db/queries/queries.h"
#include "experiments/design/cell_place.h"
#include "experiments/run/strategies.h"

namespace trainyard::reports {

namespace {

using db::RankTimes;
using runner::RankWork;
using runner::StepSeconds;

// Enough to reach a steady state.
constexpr int simulated_steps = 100;

bool is_foreign(const experiments::Strategy& strategy) {
  return strategy.kind == experiments::foreign_kind().name;
}

// The varied values except the strategy, which is compared.
std::string cell_of(const experiments::Run& run) {
  return experiments::further_text(experiments::cell_place(run, experiments::Compare{}));
}

using Runs = std::vector<const MeasuredRun*>;

struct Arms {
  std::map<std::string, Runs> by_name;  // of one model and cell
  // Runs of `ranks` independent ranks at once; null if there are none.
  const Runs* unconnected(std::int64_t ranks) const {
    for (const auto& [name, runs] : by_name) {
      const experiments::Strategy& strategy = runs.front()->run.strategy;
      const bool alone = strategy.stages == 1 && strategy.sharing_replicas() == 1 && !is_foreign(strategy);
      if (alone && strategy.replicas == ranks) return &runs;
    }
    return nullptr;
  }
};

// Number of each rank's core. Ranks with equal device names share a core.
std::vector<int> cores_of(const experiments::Launch& launch) {
  std::vector<int> cores;
  std::map<std::string, int> numbers;
  for (const std::string& device : launch.devices)
    cores.push_back(numbers.try_emplace(device, static_cast<int>(numbers.size())).first->second);
  return cores;
}

// The last replica of a stage does not wait, so the least time of its replicas is the reduction itself.
void take_least_reduction(std::vector<RankWork>& ranks, std::size_t stages) {
  for (std::size_t stage = 0; stage < stages; ++stage) {
    double least = ranks[stage].reduction;
    for (std::size_t r = stage; r < ranks.size(); r += stages) least = std::min(least, ranks[r].reduction);
    for (std::size_t r = stage; r < ranks.size(); r += stages) ranks[r].reduction = least;
  }
}

StepCost cost_of(const runner::SimulatedSteps& steps) {
  StepCost cost{steps.seconds, {}};
  for (const StepSeconds& rank : steps.ranks)
    for (const auto each : all_parts)
      cost.parts.*each += rank.*each / static_cast<double>(steps.ranks.size());
  return cost;
}

runner::StepPlan plan_of(const MeasuredRun& run, std::vector<RankWork> ranks) {
  const experiments::Strategy& strategy = run.run.strategy;
  const auto micro_batches = static_cast<int>(strategy.micro_batches);
  runner::StepPlan plan;
  plan.schedule = runner::in_turns(
      runner::training_schedule(strategy.schedule, static_cast<int>(strategy.stages), micro_batches),
      micro_batches, static_cast<int>(run.run.gradient_accumulation));
  plan.stages_meet = run.run.optimizer.clip_norm > 0;
  // A receiver's wall time includes the sender's copying. Its processor time does not.
  plan.messages_stream = !run.launch.devices_shared;
  plan.ranks = std::move(ranks);
  plan.cores = cores_of(run.launch);
  return plan;
}

StepCost of_stages(const MeasuredRun& run) {
  std::vector<RankWork> ranks;
  for (const RankTimes& rank : run.epoch.ranks) ranks.push_back(work_of(run, rank));
  take_least_reduction(ranks, static_cast<std::size_t>(run.run.strategy.stages));
  return cost_of(simulate_steps(plan_of(run, std::move(ranks)), simulated_steps));
}

StepCost of_replicas(const MeasuredRun& run, const Runs& base) {
  RankWork work = mean_work(base);
  const double local =
      static_cast<double>(run.run.global_batch) / static_cast<double>(run.run.strategy.replicas);
  const double share = local / static_cast<double>(base.front()->run.global_batch);
  work.input *= share;
  work.forward *= share;
  work.backward *= share;
  if (run.epoch.transport == "shared memory")
    work.optimizer /= static_cast<double>(run.run.strategy.replicas);  // each replica updates its part
  work.reduction = mean_work({&run}).reduction;
  const std::vector<RankWork> ranks(run.epoch.ranks.size(), work);
  return cost_of(simulate_steps(plan_of(run, ranks), simulated_steps));
}

StepCost of_independent(const MeasuredRun& run, const Runs& single) {
  const std::vector<RankWork> one{mean_work(single)};
  return cost_of(simulate_steps(plan_of(run, one), 1));
}

void add_mean(StepCost& mean, const StepCost& cost, double count) {
  mean.seconds += cost.seconds / count;
  for (const auto each : all_parts) mean.parts.*each += cost.parts.*each / count;
}

struct Basis {
  Runs runs;  // of one device
  std::string text;
  std::string missing;
};

std::string part_of_batch(const experiments::Run& run, const experiments::Run& base) {
  const auto local = run.global_batch / run.strategy.sharing_replicas();
  return local == base.global_batch ? "" : fmt::format(" on {} of {} samples", local, base.global_batch);
}

bool timed_alike(const MeasuredRun& a, const MeasuredRun& b) {
  const auto of = [](const MeasuredRun& run) {
    const experiments::Circumstances& at = run.launch.circumstances;
    return std::tie(at.host, at.processor, at.release, at.libtorch, at.threads_per_rank, run.run.precision);
  };
  return of(a) == of(b);
}

// The runs of `base` from which `measured` can be predicted, or why there are none.
Basis usable(const Runs& base, const MeasuredRun& measured) {
  Basis basis;
  for (const MeasuredRun* one : base) {
    const std::string lack = lack_of(*one);
    if (lack.empty() && timed_alike(*one, measured)) basis.runs.push_back(one);
    if (basis.missing.empty()) basis.missing = lack;
  }
  if (!basis.runs.empty()) basis.missing = "";
  if (basis.runs.empty() && basis.missing.empty())
    basis.missing = base.front()->run.strategy.name +
                    " was trained with another host, release, thread count or precision";
  return basis;
}

Basis basis_of(const MeasuredRun& measured, const Arms& arms) {
  const experiments::Run& run = measured.run;
  const experiments::Strategy& strategy = run.strategy;
  if (strategy.stages > 1) {
    const std::string order = strategy.schedule.empty() ? "layer by layer" : strategy.schedule;
    return {{}, "the " + order + " schedule, simulated from the measured work of each rank", ""};
  }
  const Runs* limit = strategy.independent() ? nullptr : arms.unconnected(strategy.replicas);
  const Runs* single = arms.unconnected(1);
  if (limit == nullptr && single == nullptr)
    return {{}, "", "the sweep has no run on one device to predict from"};
  Basis basis = usable(limit != nullptr ? *limit : *single, measured);
  const bool from_limit = limit != nullptr && !basis.runs.empty();
  if (basis.runs.empty() && limit != nullptr && single != nullptr) basis = usable(*single, measured);
  if (basis.runs.empty()) return basis;
  basis.text = from_limit ? fmt::format("{} independent ranks at once", strategy.replicas) : "single";
  basis.text += part_of_batch(run, basis.runs.front()->run);
  if (!strategy.independent()) basis.text += ", with the measured waits for gradients";
  return basis;
}

StepCost predicted_cost(const MeasuredRun& run, const Basis& basis) {
  if (run.run.strategy.stages > 1) return of_stages(run);
  return run.run.strategy.independent() ? of_independent(run, basis.runs) : of_replicas(run, basis.runs);
}

Prediction predict(const Runs& runs, const Arms& arms) {
  const experiments::Run& run = runs.front()->run;
  Prediction prediction{run.model, cell_of(run), run.strategy.name, static_cast<int>(runs.size()), "", "", {},
                        {}};
  for (const MeasuredRun* one : runs) {
    if (prediction.missing.empty()) prediction.missing = lack_of(*one);
  }
  if (!prediction.missing.empty()) return prediction;
  const auto count = static_cast<double>(runs.size());
  for (const MeasuredRun* one : runs) {
    add_mean(prediction.measured, measured_cost(*one), count);
    const Basis basis = basis_of(*one, arms);
    if (prediction.missing.empty()) prediction.missing = basis.missing;
    if (!prediction.missing.empty()) continue;
    prediction.basis = basis.text;
    add_mean(prediction.predicted, predicted_cost(*one, basis), count);
  }
  if (!prediction.missing.empty()) prediction.predicted = {};
  return prediction;
}

}  // namespace

std::vector<Prediction> predictions(const std::vector<MeasuredRun>& runs) {
  std::map<std::pair<std::string, std::string>, Arms> cells;
  for (const MeasuredRun& run : runs)
    cells[{run.run.model, cell_of(run.run)}].by_name[run.run.strategy.name].push_back(&run);
  std::vector<Prediction> all;
  for (const auto& [cell, arms] : cells)
    for (const auto& [name, of_arm] : arms.by_name)
      if (of_arm.front()->run.strategy.kind != "single") all.push_back(predict(of_arm, arms));
  return all;
}

using db::MedianEpoch;
using db::RankTimes;
using db::SecondsByPart;
using runner::RankWork;
using runner::StepSeconds;

namespace {

double part(const SecondsByPart& seconds, const char* name) {
  const auto found = seconds.find(name);
  return found == seconds.end() ? 0 : found->second;
}

}  // namespace

std::vector<MeasuredRun> measured_runs(const db::Database& database, const std::string& experiment,
                                       const std::vector<experiments::Run>& runs) {
  std::map<std::string, const experiments::Run*> wanted;
  for (const experiments::Run& run : runs) wanted[experiments::run_key(run)] = &run;
  std::vector<MeasuredRun> found;
  for (MedianEpoch& epoch : db::middle_epochs(database, experiment)) {
    const auto run = wanted.find(epoch.run_key);
    if (run == wanted.end()) continue;
    const std::vector<db::Attempt> attempts = db::attempts_of_run(database, epoch.run_key);
    const auto last = std::ranges::find(attempts.rbegin(), attempts.rend(), "finished", &db::Attempt::status);
    if (last == attempts.rend()) continue;
    found.push_back({*run->second, experiments::launch_from_json(last->launch), std::move(epoch)});
  }
  return found;
}

std::string lack_of(const MeasuredRun& run) {
  if (is_foreign(run.run.strategy)) return "a program of your own does not record the parts of its steps";
  const bool has_parts = std::ranges::all_of(run.epoch.ranks, [&](const RankTimes& rank) {
    return rank.passed.contains("forward") &&
           (run.run.strategy.stages == 1 || rank.passed.contains("transfer"));
  });
  if (!(run.epoch.steps > 0) || !has_parts)
    return "trained by a release that did not record the parts of a step";
  const bool on_core = std::ranges::all_of(
      run.epoch.ranks, [](const RankTimes& rank) { return rank.on_core.contains("forward"); });
  if (!run.launch.devices_shared) return "";
  if (!on_core) return "its ranks share cores, but the processor time of each rank was not recorded";
  if (run.launch.circumstances.threads_per_rank > 1)
    return "its ranks share cores and have several threads each, so the processor time of each rank is not "
           "known";
  return "";
}

RankWork work_of(const MeasuredRun& run, const RankTimes& rank) {
  const double steps = run.epoch.steps;
  const bool shares_core = run.launch.devices_shared;
  const SecondsByPart& own = shares_core ? rank.on_core : rank.passed;
  RankWork work;
  work.input = part(own, "data") / steps;
  work.forward = part(own, "forward") / steps;
  work.backward = part(own, "backward") / steps;
  work.transfer = part(own, "transfer") / steps;
  work.reduction = (part(own, "exposed_communication") - part(own, "transfer")) / steps;
  work.optimizer = part(own, "optimizer") / steps;
  work.other = part(rank.passed, "other") / steps;
  // Processor time of a waiting rank: polling and wake-ups.
  if (shares_core) work.transfer += part(own, "bubble") / steps;
  return work;
}

RankWork mean_work(const std::vector<const MeasuredRun*>& runs) {
  RankWork mean;
  double count = 0;
  for (const MeasuredRun* run : runs) count += static_cast<double>(run->epoch.ranks.size());
  for (const MeasuredRun* run : runs) {
    for (const RankTimes& rank : run->epoch.ranks) {
      const RankWork work = work_of(*run, rank);
      for (const auto each : {&RankWork::input, &RankWork::forward, &RankWork::backward, &RankWork::transfer,
                              &RankWork::reduction, &RankWork::optimizer, &RankWork::other})
        mean.*each += work.*each / count;
    }
  }
  return mean;
}

StepCost measured_cost(const MeasuredRun& run) {
  const bool shares = run.launch.devices_shared;
  const double weight = 1 / (run.epoch.steps * static_cast<double>(run.epoch.ranks.size()));
  StepCost cost{run.epoch.train_seconds / run.epoch.steps, {}};
  for (const RankTimes& rank : run.epoch.ranks) {
    const auto add = [&](double StepSeconds::*to, const char* name) {
      const double passed = part(rank.passed, name);
      const double own = shares ? part(rank.on_core, name) : passed;
      cost.parts.*to += weight * own;
      cost.parts.core_wait += weight * (passed - own);
    };
    add(&StepSeconds::input, "data");
    add(&StepSeconds::compute, "forward");
    add(&StepSeconds::compute, "backward");
    add(&StepSeconds::transfer, "transfer");
    add(&StepSeconds::optimizer, "optimizer");
    cost.parts.bubble += weight * part(rank.passed, "bubble");
    cost.parts.other += weight * part(rank.passed, "other");
    cost.parts.communication +=
        weight * (part(rank.passed, "exposed_communication") - part(rank.passed, "transfer"));
  }
  return cost;
}

}  // namespace trainyard::reports
