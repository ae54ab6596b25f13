#include "orchestrator/sweep.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include <poll.h>

#include "orchestrator/attempt.h"
#include "orchestrator/leftovers.h"
#include "orchestrator/recovery.h"
#include "orchestrator/store.h"

namespace trainyard::orchestrator {

namespace {

constexpr int poll_milliseconds = 20;

// The runs under way and those that wait, in order. One thread: the kernel ties a rank's life to the thread
// that launched it.
class Sweep {
 public:
  Sweep(const Plan& plan, bool exclusive_host, Workplace workplace, const std::atomic<int>& stop)
      : plan_(plan), exclusive_host_(exclusive_host), workplace_(workplace), stop_(stop) {
    for (const std::size_t index : execution_order(plan)) waiting_.push_back(index);
    result_.skipped = static_cast<int>(plan.runs.size() - waiting_.size());
  }

  SweepResult run() {
    while (true) {
      const int level = stop_;
      if (level != 0) tell_stopping(level);
      for (const auto& attempt : active_) attempt->stop(level);
      if (level == 0) start_what_fits();
      step_all();
      if (active_.empty() && (waiting_.empty() || stop_ != 0)) break;
      ::poll(nullptr, 0, poll_milliseconds);  // a signal ends the wait
    }
    result_.interrupted = result_.interrupted || !waiting_.empty();
    return result_;
  }

 private:
  void tell_stopping(int level) {
    if (active_.empty() || level <= told_level_) return;
    told_level_ = level;
    workplace_.status.message(level == 1 ? "stopping: what runs is being ended; once more ends it at once"
                                         : "stopping at once");
  }

  void start_what_fits() {
    while (!waiting_.empty()) {
      const PlannedRun& next = plan_.runs[waiting_.front()];
      const auto devices = leased(next);
      if (!devices) return;
      waiting_.pop_front();
      active_.push_back(std::make_unique<Attempt>(next, *devices, exclusive_host_, workplace_));
    }
  }

  // The devices of its ranks, where all of them are free now; shifted onto free ones where runs share the
  // host.
  std::optional<std::vector<Device>> leased(const PlannedRun& run) const {
    if (active_.empty()) return run.devices;
    if (exclusive_host_) return std::nullopt;
    const std::vector<Device> free = free_devices();
    const std::size_t wanted = distinct_devices(run.devices);
    if (free.size() < wanted) return std::nullopt;
    return place_ranks(run.run.strategy, {free.begin(), free.begin() + static_cast<std::ptrdiff_t>(wanted)});
  }

  std::vector<Device> free_devices() const {
    std::set<std::string> taken;
    for (const auto& attempt : active_)
      for (const Device& device : attempt->devices()) taken.insert(device.name);
    std::vector<Device> free;
    for (const Device& device : plan_.devices)
      if (taken.count(device.name) == 0) free.push_back(device);
    return free;
  }

  void step_all() {
    for (auto& attempt : active_)
      if (!attempt->step()) end(std::exchange(attempt, nullptr));
    active_.erase(std::remove(active_.begin(), active_.end(), nullptr), active_.end());
  }

  void end(std::unique_ptr<Attempt> attempt) {
    const RunOutcome& outcome = attempt->outcome();
    const PlannedRun& planned = attempt->planned();
    if (outcome.kind == RunOutcome::Kind::finished) ++result_.finished;
    if (outcome.kind == RunOutcome::Kind::interrupted) result_.interrupted = true;
    if (outcome.kind == RunOutcome::Kind::failed)
      result_.failures.push_back(
          {planned.key, experiments::label(planned.run), outcome.first_error, outcome.log});
    workplace_.status.run_ended(planned, outcome);
  }

  const Plan& plan_;
  bool exclusive_host_;
  Workplace workplace_;
  const std::atomic<int>& stop_;
  std::deque<std::size_t> waiting_;
  std::vector<std::unique_ptr<Attempt>> active_;
  int told_level_ = 0;
  SweepResult result_;
};

}  // namespace

SweepResult run_sweep(const experiments::Experiment& experiment, const Plan& plan, const Yard& yard,
                      db::Database& database, const Programs& programs, Launcher& launcher, Status& status,
                      const std::atomic<int>& stop, const SweepOptions& options) {
  const Subreaper subreaper;
  db::Ingest ingest(database);
  recover(yard, database, ingest, [&](const std::string& text) { status.message(text); });
  StoreProcess store(programs.store, yard.root() / "store.log", launcher);
  const Workplace workplace{yard,     experiment.name, database, ingest, programs,
                            launcher, store,           status,   options};
  status.sweep_started(plan);
  SweepResult result = Sweep(plan, experiment.machine.exclusive_host, workplace, stop).run();
  status.sweep_ended();
  return result;
}

}  // namespace trainyard::orchestrator
