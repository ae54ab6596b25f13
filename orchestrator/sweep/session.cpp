#include "orchestrator/sweep/session.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "db/ingest/ingest.h"
#include "db/ingest/maintenance.h"
#include "db/queries/earlier_results.h"
#include "db/queries/queries.h"
#include "orchestrator/resources/processor_use.h"
#include "orchestrator/sweep/recovery.h"
#include "orchestrator/yard/journal.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

// The cores and GPUs of all pending runs.
std::vector<Device> pending_devices(const Plan& plan) {
  std::vector<Device> devices;
  for (const auto& run : plan.runs)
    if (plan.waits(run)) devices.insert(devices.end(), run.devices.begin(), run.devices.end());
  return devices;
}

// Whether the largest pending run could start now. Its sweep is not timed and leases devices for each run.
bool could_start(const Plan& plan, DeviceLeases& leases) {
  if (plan.one_at_a_time) return leases.are_free(pending_devices(plan));
  std::size_t needed = 0;
  for (const auto& run : plan.runs)
    if (plan.waits(run)) needed = std::max(needed, leased_devices(run.devices));
  return std::cmp_less_equal(
      needed, std::ranges::count_if(plan.devices, [&](const auto& each) { return leases.is_free(each); }));
}

}  // namespace

Session::Session(const SweepRequest& request, Yard yard, const YardLock& lock, OnMessage on_message)
    : request_(request),
      yard_(std::move(yard)),
      lock_(lock),
      on_message_(std::move(on_message)),
      database_(db::open_yard_for_writing(yard_.root(), [&](const std::string& line) {
        on_message_(line);
        log::warning("rebuilt", {{"text", line}});
      })) {
  const experiments::Experiment& experiment = request.experiment;
  const fs::path folder = fs::absolute(experiment.file).parent_path();
  const std::string& spool = experiment.machine.spool;
  if (!spool.empty()) yard_ = with_spool(yard_, folder / spool);
  launcher_ = make_launcher({experiment.machine, request.machine.programs, yard_, folder});
  if (request.no_wait)
    if (const Plan plan = planned({}); needs_devices(plan)) take_host_now(plan);
  journal_request();
  plan_ = planned(recovered());
}

std::optional<SweepResult> Session::run(Status& status, const std::atomic<int>& stop) {
  const bool has_host = leases_ && (host_lock_ || !needs_host(plan_));
  if (!has_host && needs_devices(plan_) && !wait_for_host(stop)) return std::nullopt;
  journal_replaced_results();
  if (plan_.to_run() > 0) launcher_->prepare();
  SweepOptions options = request_.sweep;
  options.yard_lock = &lock_;
  options.leases = leases_ ? &*leases_ : nullptr;
  options.others_limit = others_limit_here();
  options.progress_timeout_seconds = request_.experiment.machine.progress_timeout_seconds;
  auto result = run_sweep(request_.experiment, plan_, yard_, database_, request_.machine.programs, *launcher_,
                          status, stop, options);
  leases_.reset();
  host_lock_.reset();
  return result;
}

Plan Session::planned(const std::vector<LiveAttempt>& live) const {
  const Machine& machine = request_.machine;
  Plan plan =
      make_plan(request_.experiment, machine.devices, machine.circumstances, &database_, request_.plan, live);
  if (!request_.sweep.needed) return plan;
  leave_out_unneeded(plan, request_.sweep.needed(database_));
  choose_probes(plan, database_);  // none on a run that is left out
  return plan;
}

void Session::add_to_journal(const nlohmann::json& entry) {
  append_to_journal(yard_.journal(), entry);
  db::Ingest(database_).journal_entry(entry);
}

void Session::journal_request() {
  const experiments::Experiment& experiment = request_.experiment;
  const auto names = db::experiment_names(database_);
  const bool again = std::ranges::find(names, experiment.name) != names.end();
  const auto known = again ? db::latest_plan(database_, experiment.name).data_profiles
                           : std::vector<experiments::ProfiledData>{};
  add_to_journal(run_entry(experiment, data_profiles(experiment, known), request_.asked));
}

// The journal keeps the results of finished runs that this sweep trains again.
void Session::journal_replaced_results() {
  std::vector<std::string> keys;
  for (const auto& run : plan_.runs) {
    const bool finished = run.state == PlanState::done_elsewhere || !run.times_problem.empty();
    if (finished && plan_.waits(run)) keys.push_back(run.key);
  }
  if (const auto results = db::results_of(database_, keys); !results.empty())
    add_to_journal(retrain_entry(results));
}

std::vector<LiveAttempt> Session::recovered() {
  Reattachment reattachment(request_.experiment.machine.launcher);
  return recover(
      yard_, database_,
      [&](const std::string& line) {
        on_message_(line);
        log::warning("recovered", {{"text", line}});
      },
      [&](const fs::path& attempt) { return reattachment.alive(attempt); });
}

// Whether the sweep trains anything on devices of this host.
bool Session::needs_devices(const Plan& plan) const {
  return request_.experiment.machine.on_this_host() && plan.to_run() > 0;
}

// Whether any pending run on this host is timed: its times count only if it has the host to itself.
bool Session::needs_host(const Plan& plan) const {
  return request_.experiment.machine.exclusive_host && needs_devices(plan);
}

DeviceLeases& Session::new_leases() {
  return leases_.emplace(host_lock_folder(), HostUser{request_.command, yard_.root()});
}

// `no_wait`: take the share of the host at once. UserError if another sweep is in the way. A sweep that leases
// devices for each run is checked only now: it waits for devices that another sweep takes later.
void Session::take_host_now(const Plan& plan) {
  constexpr const char* advice = "wait for it to end, or leave out --no-wait";
  const LockPlace host = host_lock_in(host_lock_folder());
  DeviceLeases& leases = new_leases();
  if (!needs_host(plan)) {
    if (!taken_soon([&] { return could_start(plan, leases); })) throw UserError(leases.taken(), advice);
    return;
  }
  const bool locked = taken_soon([&] {
    host_lock_ = SharedLock::try_take(host, {request_.command, yard_.root()});
    return host_lock_.has_value();
  });
  if (!locked) throw UserError("this host is reserved for timed runs by " + shared_lock_holder(host), advice);
  if (!taken_soon([&] { return leases.try_take(pending_devices(plan)); }))
    throw UserError(leases.taken(), advice);
}

// False if a signal ended the waiting.
bool Session::wait_for_host(const std::atomic<int>& stop) {
  DeviceLeases& leases = new_leases();
  if (!needs_host(plan_)) return true;  // it leases devices for each run
  const LockPlace host = host_lock_in(host_lock_folder());
  host_lock_ = SharedLock::wait(host, {request_.command, yard_.root()}, stop, [&](const std::string& holder) {
    report_waiting("this host is reserved for timed runs by " + holder,
                   "Two sweeps at once would distort each other's times.");
  });
  return host_lock_ && leases.wait(pending_devices(plan_), stop, [&](const std::string& taken) {
    report_waiting(taken, "Timed runs need their devices to themselves.");
  });
}

void Session::report_waiting(const std::string& what, const std::string& why) const {
  on_message_("waiting: " + what + "\n         " + why + " With --no-wait the command fails instead.");
  log::info("waits for this host", {{"why", what}});
}

}  // namespace trainyard::orchestrator
