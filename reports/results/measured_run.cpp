#include "reports/results/measured_run.h"

#include <algorithm>
#include <map>

#include "db/queries/queries.h"

namespace trainyard::reports {

using db::MiddleEpoch;
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
  for (MiddleEpoch& epoch : db::middle_epochs(database, experiment)) {
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
  if (run.run.strategy.kind == "foreign")
    return "a program of your own does not record the parts of its steps";
  const bool has_parts = std::ranges::all_of(run.epoch.ranks, [&](const RankTimes& rank) {
    return rank.passed.contains("forward") &&
           (run.run.strategy.stages == 1 || rank.passed.contains("transfer"));
  });
  if (!(run.epoch.steps > 0) || !has_parts)
    return "trained by a release that did not record the parts of a step";
  const bool on_core = std::ranges::all_of(
      run.epoch.ranks, [](const RankTimes& rank) { return rank.on_core.contains("forward"); });
  if (!run.launch.devices_shared) return "";
  if (!on_core) return "its ranks share cores, and their own seconds on them were not recorded";
  if (run.launch.circumstances.threads_per_rank > 1)
    return "its ranks share cores and have several threads each: their own seconds on them are not known";
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
  // What a rank does on its core while it waits: it looks again, and is woken.
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
