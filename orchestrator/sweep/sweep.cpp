#include "orchestrator/sweep/sweep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <list>
#include <memory>
#include <set>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <malloc.h>

#include "base/log.h"
#include "base/text.h"
#include "db/ingest/ingest.h"
#include "orchestrator/plan/membership.h"
#include "orchestrator/rank/orphans.h"
#include "orchestrator/resources/device_pool.h"
#include "orchestrator/sweep/attempt.h"

namespace trainyard::orchestrator {

namespace {

using Clock = std::chrono::steady_clock;
using experiments::EndReason;

constexpr auto between_steps = std::chrono::milliseconds(10);
constexpr double longest_backoff_seconds = 60;
constexpr int most_times_taken_away = 5;
constexpr double again_after_seconds = 1;
constexpr auto others_again_after = std::chrono::milliseconds(100);

// Run that waits for its devices, or for its next retry.
struct Waiting {
  std::size_t run = 0;      // index in the plan
  std::size_t devices = 1;  // number of devices that it needs
  int failed_tries = 0;
  int times_taken_away = 0;
  std::optional<int> adopts;  // attempt that is already running
  Clock::time_point not_before;
  std::optional<experiments::Membership> membership = {};  // of an elastic run with fewer replicas
  std::vector<std::string> lost_devices = {};              // of its lost ranks
};

struct Active {
  Waiting waited;
  std::vector<Device> devices;  // of its ranks
  bool alone = false;           // no other run may start
  std::unique_ptr<Attempt> attempt;
};

// Devices for a waiting run.
struct Granted {
  DevicePool::Grant grant;
  std::vector<Device> devices;  // of its ranks
};

// Active and waiting runs, in order. There is only one thread, because the kernel kills a rank when the
// thread that launched it ends.
class Sweep {
 public:
  Sweep(const Plan& plan, bool exclusive_host, Workplace workplace, const std::atomic<int>& stop)
      : plan_(plan),
        exclusive_host_(exclusive_host),
        workplace_(workplace),
        stop_(stop),
        pool_(plan.devices.size()) {
    place_.resize(plan.runs.size());
    for (const std::size_t index : execution_order(plan)) {
      place_[index] = waiting_.size();
      const PlannedRun& run = plan.runs[index];
      waiting_.insert(run.adopts ? waiting_.begin() : waiting_.end(),
                      {index, leased_devices(run.devices), 0, 0, run.adopts, {}, run.membership});
    }
    result_.skipped = static_cast<int>(plan.finished_before());
    result_.not_needed = static_cast<int>(plan.in_state(PlanState::not_needed));
  }

  SweepResult run() {
    try {
      run_all();
    } catch (const db::StorageError& error) {
      stopped_by(error.what());
    } catch (const std::system_error& error) {
      stopped_by(error.what());
    }
    result_.not_needed += static_cast<int>(set_aside_.size());
    result_.interrupted = result_.interrupted || (stop_ != 0 && !waiting_.empty());
    return result_;
  }

 private:
  const SweepOptions& options() const { return workplace_.options; }
  DeviceLeases* leases() const { return options().leases; }
  int level() const { return std::max(stop_.load(), failed_fast_ ? 1 : 0); }

  void run_all() {
    keep_needed();
    while (true) {
      const int now = level();
      if (now != 0) announce_stop(now);
      for (const auto& active : active_) active.attempt->stop(now);
      if (yard_moved()) return stopped_by("");
      if (now == 0) start_what_fits();
      if (yard_moved()) return stopped_by("");  // before records are read at the old path
      const bool any_ended = step_all();
      if (any_ended) keep_needed();
      if (active_.empty() && (waiting_.empty() || level() != 0)) break;
      if (!any_ended) std::this_thread::sleep_for(between_steps);
    }
  }

  // Sets aside the waiting runs that are not needed, takes back those that are again, and puts all in the order of need.
  void keep_needed() {
    if (!options().needed || (waiting_.empty() && set_aside_.empty())) return;
    const Needed needed = options().needed(workplace_.database);
    untimed_ = needed.untimed;
    waiting_.splice(waiting_.end(), set_aside_);
    const auto place_of = [&](const Waiting& each) {
      const auto found = needed.order.find(plan_.runs[each.run].key);
      return found == needed.order.end() ? std::size_t{0} : found->second;
    };
    waiting_.sort([&](const Waiting& a, const Waiting& b) {
      return std::tuple(!a.adopts, place_of(a), place_[a.run]) <
             std::tuple(!b.adopts, place_of(b), place_[b.run]);
    });
    for (auto each = waiting_.begin(); each != waiting_.end();) {
      const auto next = std::next(each);
      if (!each->adopts && needed.unneeded.contains(plan_.runs[each->run].key))
        set_aside_.splice(set_aside_.end(), waiting_, each);
      each = next;
    }
    workplace_.status.not_needed(set_aside_.size());
    if (needed.progress == progress_) return;
    progress_ = needed.progress;
    log::info("needed runs", {{"progress", progress_}, {"waiting", waiting_.size()}});
    workplace_.status.message(
        fmt::format("{}, {} not needed so far", progress_,
                    counted(result_.not_needed + static_cast<int>(set_aside_.size()), "run")));
  }

  bool yard_moved() const { return options().yard_lock != nullptr && options().yard_lock->moved(); }

  // Kills all ranks at once, because they cannot record anything on a full or failed disk, or in a yard that was moved.
  void stopped_by(const std::string& what) {
    result_.yard_moved = yard_moved();
    result_.stopped_by = result_.yard_moved
                             ? "the yard " + workplace_.yard.root().string() +
                                   " was renamed, moved or replaced during the sweep, so its ranks were ended"
                             : what;
    log::error("sweep stopped", {{"cause", result_.stopped_by}});
    active_.clear();
  }

  void announce_stop(int level) {
    if (active_.empty() || level <= announced_level_) return;
    announced_level_ = level;
    log::warning("sweep stops", {{"why", failed_fast_ ? "a run has failed" : "a signal"}, {"level", level}});
    workplace_.status.message(failed_fast_ ? "a run has failed: ending the other runs"
                              : level == 1 ? "stopping: ending all runs (a second signal kills them)"
                                           : "stopping: killing all runs");
  }

  // Whether the host is kept for timed runs, but the times of this one are not needed.
  bool is_untimed(std::size_t run) const {
    return plan_.one_at_a_time && !plan_.placed_by_launcher && untimed_.contains(plan_.runs[run].key);
  }

  // Whether no other run trains meanwhile, and the run has the devices of the plan.
  bool trains_alone(std::size_t run) const { return plan_.one_at_a_time && !is_untimed(run); }

  // Runs that train alone come first, so that afterwards the others fill all devices.
  bool must_wait() const {
    const auto alone = [&](const Waiting& each) { return trains_alone(each.run); };
    return plan_.one_at_a_time && !active_.empty() &&
           (active_.front().alone || std::ranges::any_of(waiting_, alone));
  }

  void start_what_fits() {
    while (!waiting_.empty() && !must_wait()) {
      const auto granted = leased();
      if (!granted) return;
      const auto found =
          std::ranges::find_if(waiting_, [&](const Waiting& each) { return each.run == granted->grant.run; });
      const Waiting next = *found;
      waiting_.erase(found);
      const PlannedRun& planned = plan_.runs[next.run];
      const bool times_needed = !is_untimed(next.run);
      const std::vector<Device> devices =
          next.membership ? devices_of_members(granted->devices, next.membership->replicas, next.lost_devices)
                          : granted->devices;
      log::debug("leased", {{"run", planned.key},
                            {"places", granted->grant.devices.size()},
                            {"failed_tries", next.failed_tries},
                            {"waiting", waiting_.size()}});
      active_.push_back(
          {next, granted->devices, trains_alone(next.run),
           std::make_unique<Attempt>(
               Assignment{planned, devices, exclusive_host_ && times_needed, times_needed,
                          options().max_retries - next.failed_tries, next.membership, next.adopts},
               workplace_)});
    }
  }

  // The next run that can start, with devices that no other sweep of this host has.
  std::optional<Granted> leased() {
    if (const auto now = Clock::now(); now >= ask_again_) {
      put_back_free();
      blocked_ = false;
      ask_again_ = now + others_again_after;
    }
    while (!blocked_) {
      const auto granted = grant();
      if (!granted) break;
      Granted found{*granted, devices_of(*granted)};
      if (leases() == nullptr || leases()->try_take(found.devices)) return found;
      pool_.release(granted->run);
      blocked_ = !withhold_taken(*granted);
    }
    announce_taken();
    return std::nullopt;
  }

  void put_back_free() {
    std::erase_if(withheld_, [&](std::size_t place) {
      const bool free = leases()->is_free(plan_.devices[place]);
      if (free) pool_.put_back(place);
      return free;
    });
  }

  // Withholds the devices that other sweeps have, so that a run can start on others. False if that does not
  // help: the devices of the run are fixed, or it borrows cores beside its devices.
  bool withhold_taken(const DevicePool::Grant& granted) {
    if (trains_alone(granted.run)) return false;
    const std::size_t before = withheld_.size();
    for (const std::size_t place : granted.devices) {
      if (leases()->is_free(plan_.devices[place])) continue;
      pool_.withhold(place);
      withheld_.push_back(place);
    }
    return withheld_.size() > before;
  }

  // Says once for each holder that the whole sweep waits for it.
  void announce_taken() {
    if (!active_.empty() || (!blocked_ && withheld_.empty()) || leases()->taken() == announced_taken_) return;
    announced_taken_ = leases()->taken();
    log::info("waits for devices", {{"why", announced_taken_}});
    workplace_.status.message("waiting: " + announced_taken_);
  }

  std::optional<DevicePool::Grant> grant() {
    std::vector<DevicePool::Request> requests;
    const auto now = Clock::now();
    for (const Waiting& each : waiting_) {
      if (each.not_before > now) continue;
      if (trains_alone(each.run)) {
        requests = {{each.run, each.devices}};
        break;
      }
      requests.push_back({each.run, each.devices});
      if (!plan_.one_at_a_time && requests.size() > look_ahead) break;
    }
    return pool_.grant(requests);
  }

  std::vector<Device> devices_of(const DevicePool::Grant& granted) const {
    const PlannedRun& run = plan_.runs[granted.run];
    if (trains_alone(granted.run) || plan_.placed_by_launcher) return run.devices;
    std::vector<Device> leased;
    for (const std::size_t place : granted.devices) leased.push_back(plan_.devices[place]);
    const std::size_t cores_each = run.devices.front().cores.size();
    std::vector<Device> ranks = place_ranks(run.run.strategy, grouped(leased, cores_each));
    widen_to_threads(ranks, plan_.devices, run.run.threads.value_or(1));
    return ranks;
  }

  bool step_all() {
    bool any_ended = false;
    for (auto active = active_.begin(); active != active_.end();) {
      if (active->attempt->step()) {
        ++active;
        continue;
      }
      any_ended = true;
      Active ended = std::move(*active);
      active = active_.erase(active);
      pool_.release(ended.waited.run);
      if (leases() != nullptr) leases()->give_back(ended.devices);
      end(std::move(ended));
    }
    return any_ended;
  }

  void end(Active ended) {
    RunOutcome outcome = ended.attempt->outcome();
    if (outcome.membership) ended.waited.membership = outcome.membership;
    if (!outcome.lost_device.empty()) ended.waited.lost_devices.push_back(outcome.lost_device);
    const PlannedRun& planned = ended.attempt->planned();
    const bool taken_away = starts_again(outcome.reason);
    if (outcome.reason == EndReason::finished) ++result_.finished;
    if (is_interruption(outcome.reason) && stop_ != 0) result_.interrupted = true;
    if (is_interruption(outcome.reason) && failed_fast_) ++result_.not_started;
    if (taken_away && level() == 0) outcome = started_again(ended.waited, outcome);
    if (is_failure(outcome.reason) && !taken_away) outcome.retry_seconds = retried(ended.waited);
    workplace_.status.run_ended(planned, outcome);
    if (outcome.retry_seconds) log_retry(planned, ended.waited, outcome);
    if (!is_failure(outcome.reason) || outcome.retry_seconds) return;
    result_.failures.push_back(
        {planned.key, experiments::label(planned.run), outcome.first_error, outcome.log});
    give_up_where_too_many_failed();
  }

  void log_retry(const PlannedRun& planned, const Waiting& ended, const RunOutcome& outcome) const {
    const bool taken_away = starts_again(outcome.reason);
    log::Fields fields{{"run", planned.key},
                       {"label", experiments::label(planned.run)},
                       {"after_seconds", *outcome.retry_seconds},
                       {"why", taken_away ? "it was preempted: " + outcome.first_error
                                          : "it failed, and --max-retries allows another try"}};
    if (!taken_away) {
      fields.emplace_back("retry", ended.failed_tries + 1);
      fields.emplace_back("of", options().max_retries);
    }
    log::info("tried again", fields);
  }

  // Starts a preempted run again, without using a retry. After several preemptions without progress it has
  // failed.
  RunOutcome started_again(Waiting taken, RunOutcome outcome) {
    if (outcome.reason != EndReason::out_of_time && ++taken.times_taken_away >= most_times_taken_away) {
      outcome.reason = EndReason::failed;
      outcome.first_error += fmt::format("; this has happened {} times", most_times_taken_away);
      return outcome;
    }
    outcome.retry_seconds = try_again(taken, again_after_seconds);
    return outcome;
  }

  // Seconds until the retry. Empty if there is none.
  std::optional<double> retried(Waiting failed) {
    if (failed.failed_tries >= options().max_retries || level() != 0) return std::nullopt;
    const double seconds = std::min(options().backoff_seconds * std::pow(2.0, failed.failed_tries),
                                    std::max(options().backoff_seconds, longest_backoff_seconds));
    ++failed.failed_tries;
    return try_again(failed, seconds);
  }

  // Returns `seconds`.
  double try_again(Waiting run, double seconds) {
    run.adopts.reset();
    run.not_before =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    waiting_.push_front(run);
    return seconds;
  }

  void give_up_where_too_many_failed() {
    const auto failures = static_cast<int>(result_.failures.size());
    const bool too_many = options().max_failures > 0 && failures >= options().max_failures;
    if (options().fail_fast) failed_fast_ = true;
    if (!too_many && !failed_fast_) return;
    log::warning("given up", {{"runs", waiting_.size()},
                              {"failures", failures},
                              {"why", failed_fast_ ? "--fail-fast" : "--max-failures"}});
    result_.not_started += static_cast<int>(waiting_.size());
    waiting_.clear();
  }

  static constexpr std::size_t look_ahead = 1000;  // waiting runs that are tested for free devices

  const Plan& plan_;
  bool exclusive_host_;
  Workplace workplace_;
  const std::atomic<int>& stop_;
  DevicePool pool_;
  std::list<Waiting> waiting_;
  std::list<Waiting> set_aside_;    // not needed, unless another run changes that
  std::set<std::string> untimed_;   // keys of needed runs whose times are not needed
  std::vector<std::size_t> place_;  // of each run of the plan in the order of execution
  std::list<Active> active_;
  std::vector<std::size_t> withheld_;  // devices that other sweeps of this host have
  bool blocked_ = false;               // until `ask_again_`: the next run has to wait for another sweep
  Clock::time_point ask_again_;
  std::string announced_taken_;
  std::string progress_;  // of the cells that get seeds until they are decided
  bool failed_fast_ = false;
  int announced_level_ = 0;
  SweepResult result_;
};

const char* why_skipped(PlanState state) {
  switch (state) {
    case PlanState::finished:
      return "it has finished before";
    case PlanState::done_elsewhere:
      return "it has finished under other circumstances, and --reuse keeps its metrics";
    case PlanState::left_out:
      return "it was not selected";
    case PlanState::not_needed:
      return "its cells are decided, or more seeds would not decide them";
    case PlanState::to_run:
      break;
  }
  return "";
}

void log_plan(const experiments::Experiment& experiment, const Plan& plan, const Yard& yard,
              const SweepOptions& options) {
  log::info("sweep begins", {{"experiment", experiment.name},
                             {"yard", yard.root()},
                             {"launcher", experiment.machine.launcher},
                             {"runs", plan.runs.size()},
                             {"to_run", plan.to_run()},
                             {"devices", joined(plan.devices, &Device::name, ",")},
                             {"max_retries", options.max_retries}});
  for (const PlannedRun& run : plan.runs) {
    const auto fields = [&](const std::string& why) {
      return log::Fields{{"run", run.key}, {"label", experiments::label(run.run)}, {"why", why}};
    };
    if (!plan.waits(run)) log::info("skipped", fields(why_skipped(run.state)));
    if (!run.times_problem.empty()) log::info("times do not count", fields(run.times_problem));
  }
}

void log_result(const SweepResult& result) {
  log::info("sweep ends", {{"finished", result.finished},
                           {"skipped", result.skipped},
                           {"failed", result.failures.size()},
                           {"not_started", result.not_started},
                           {"not_needed", result.not_needed},
                           {"interrupted", result.interrupted ? "yes" : "no"}});
}

}  // namespace

SweepResult run_sweep(const experiments::Experiment& experiment, const Plan& plan, const Yard& yard,
                      db::Database& database, const Programs& programs, Launcher& launcher, Status& status,
                      const std::atomic<int>& stop, const SweepOptions& options) {
  ::malloc_trim(0);  // each attempt forks, and planning left twice as much free memory as is in use
  const Subreaper subreaper;
  db::Ingest ingest(database);
  const Workplace workplace{yard, experiment.name, database, ingest, programs, launcher, status, options};
  log_plan(experiment, plan, yard, options);
  status.sweep_started(plan);
  SweepResult result = Sweep(plan, experiment.machine.exclusive_host, workplace, stop).run();
  status.sweep_ended();
  log_result(result);
  return result;
}

}  // namespace trainyard::orchestrator
