#include "orchestrator/plan/time_left.h"

#include <algorithm>

namespace trainyard::orchestrator {

namespace {
constexpr double far_enough = 0.1;  // of a run: its own pace says more than that of others
}

double fraction_done(const experiments::Progress& progress) {
  if (progress.phase == experiments::Phase::done || progress.phase == experiments::Phase::test) return 1;
  if (progress.epochs == 0 || progress.epoch == 0) return 0;
  double epochs = progress.epoch - 1;
  if (progress.phase == experiments::Phase::validation)
    epochs += 1;
  else if (progress.steps > 0)
    epochs += static_cast<double>(progress.step) / static_cast<double>(progress.steps);
  return std::clamp(epochs / progress.epochs, 0.0, 1.0);
}

std::optional<double> seconds_left(double fraction, double elapsed, std::optional<double> expected) {
  if (fraction < far_enough && expected) return std::max(0.0, *expected - elapsed);
  if (fraction <= 0) return std::nullopt;
  return elapsed * (1 - fraction) / fraction;
}

RunTimes::RunTimes(const Plan& plan) {
  for (const PlannedRun& run : plan.runs) {
    if (!plan.waits(run)) continue;
    Kind& kind = kinds_[kind_of(run.run)];
    kind.known = run.expected_seconds;
    ++kind.waiting;
  }
}

void RunTimes::started(const PlannedRun& run) {
  --kinds_[kind_of(run.run)].waiting;
}

void RunTimes::waits_again(const PlannedRun& run) {
  ++kinds_[kind_of(run.run)].waiting;
}

void RunTimes::ended(const PlannedRun& run, double seconds) {
  Kind& kind = kinds_[kind_of(run.run)];
  kind.sum += seconds;
  ++kind.count;
}

std::optional<double> RunTimes::expected(const Kind& kind) const {
  if (kind.count > 0) return kind.sum / kind.count;
  return kind.known;
}

std::optional<double> RunTimes::expected(const PlannedRun& run) const {
  const auto kind = kinds_.find(kind_of(run.run));
  return kind == kinds_.end() ? std::nullopt : expected(kind->second);
}

std::optional<double> RunTimes::waiting_seconds() const {
  double sum = 0;
  for (const auto& [name, kind] : kinds_) {
    if (kind.waiting <= 0) continue;
    const auto each = expected(kind);
    if (!each) return std::nullopt;
    sum += kind.waiting * *each;
  }
  return sum;
}

}  // namespace trainyard::orchestrator
