#include "orchestrator/plan/probes.h"

#include <set>
#include <string>

#include "db/queries/probes.h"
#include "experiments/run/run.h"

namespace trainyard::orchestrator {

namespace {

// Equal for two runs that differ in nothing but the seed.
std::string arm_of(experiments::Run run) {
  run.seed = 0;
  return experiments::run_key(run);
}

// No program of the user's, and nothing that only does what another arm does.
bool can_be_probed(const experiments::Strategy& strategy) {
  return !strategy.foreign() && !strategy.independent();
}

}  // namespace

void choose_probes(Plan& plan, const db::Database& database) {
  const auto probed = db::probed_runs(database);
  std::set<std::string> arms;  // that have a probe
  for (const PlannedRun& run : plan.runs) {
    if (run.state == PlanState::left_out) continue;        // the report may never see what it found
    const auto found = probed.lower_bound({run.key, ""});  // of most runs there is none: hash few
    if (found == probed.end() || found->first != run.key) continue;
    if (probed.contains({run.key, experiments::circumstances_hash(run.circumstances)}))
      arms.insert(arm_of(run.run));
  }
  for (PlannedRun& run : plan.runs)
    run.probe = plan.waits(run) && can_be_probed(run.run.strategy) && arms.insert(arm_of(run.run)).second;
}

}  // namespace trainyard::orchestrator
