#include "orchestrator/plan/status.h"

#include <cstddef>

#include <fmt/format.h>

#include "base/text.h"
#include "experiments/run/run.h"

namespace trainyard::orchestrator {

namespace {

class PlainStatus : public Status {
 public:
  explicit PlainStatus(std::ostream& out) : out_(out) {}

  void sweep_started(const Plan& plan) override {
    total_ = plan.to_run();
    at_most_ = plan.until_decided;
    out_ << plan_text(plan) << std::endl;
  }

  void run_started(const PlannedRun&, int) override {}
  void run_progress(const PlannedRun&, const experiments::Progress&) override {}

  // "[ 3/20] mlp ddp seed 1 … finished in 4.2 s"
  void run_ended(const PlannedRun& run, const RunOutcome& outcome) override {
    const std::string total = std::to_string(total_);
    out_ << fmt::format("[{:>{}}/{}{}] {} … {}", ended_ + 1, total.size(), at_most_ ? "≤" : "",
                        total_ - not_needed_, experiments::label(run.run), outcome_text(outcome))
         << std::endl;
    if (!outcome.log.empty()) out_ << "        log: " << outcome.log << std::endl;
    if (!outcome.retry_seconds) ++ended_;  // a retry gets the same number
  }

  void not_needed(std::size_t runs) override { not_needed_ = runs; }
  void message(const std::string& text) override { out_ << text << std::endl; }
  void sweep_ended() override {}

 private:
  std::ostream& out_;
  std::size_t total_ = 0, ended_ = 0, not_needed_ = 0;
  bool at_most_ = false;
};

}  // namespace

std::unique_ptr<Status> plain_status(std::ostream& out) {
  return std::make_unique<PlainStatus>(out);
}

std::string percent_text(double fraction) {
  return fmt::format("{:.1f} %", 100 * fraction);
}

std::string waiting_text(const Plan& plan) {
  const std::size_t to_run = plan.to_run();
  const auto expected = plan.expected_seconds();
  const bool at_most = plan.until_decided && to_run > 0;
  return fmt::format("{}{} to run", at_most ? "at most " : "", to_run) +
         (to_run > 0 && expected ? ", about " + duration_text(*expected) + (at_most ? " at most" : "") : "");
}

std::string plan_text(const Plan& plan) {
  std::string text = counted(plan.runs.size(), "run") + ": ";
  const auto add = [&](std::size_t runs, const char* how) {
    if (runs > 0) text += fmt::format("{} {}, ", runs, how);
  };
  add(plan.finished_before(), "finished before");
  add(plan.in_state(PlanState::left_out), "not selected");
  add(plan.in_state(PlanState::not_needed), "not needed");
  return text + waiting_text(plan);
}

static std::string again_text(const RunOutcome& outcome) {
  return outcome.retry_seconds ? "; retrying in " + duration_text(*outcome.retry_seconds) : "";
}

std::string outcome_text(const RunOutcome& outcome) {
  const std::string time = duration_text(outcome.seconds);
  if (outcome.reason == experiments::EndReason::finished) {
    std::string text = "finished in " + time;
    if (outcome.test_accuracy)
      text += ", test accuracy " + percent_text(*outcome.test_accuracy);
    else if (outcome.test_loss)
      text += fmt::format(", test loss {:.4g}", *outcome.test_loss);
    return text;
  }
  const bool needs_no_reason =
      experiments::is_interruption(outcome.reason) && !experiments::starts_again(outcome.reason);
  return std::string(experiments::status_of(outcome.reason)) + " after " + time +
         (needs_no_reason ? "" : ": " + outcome.first_error + again_text(outcome));
}

}  // namespace trainyard::orchestrator
