// A line per event, for logs and pipes: nothing is drawn over.
#include <cstddef>
#include <map>
#include <string>

#include "experiments/run/run.h"
#include "orchestrator/plan/status.h"
#include "orchestrator/plan/status_text.h"

namespace trainyard::orchestrator {

namespace {

class PlainStatus : public Status {
 public:
  explicit PlainStatus(std::ostream& out) : out_(out) {}

  void sweep_started(const Plan& plan) override {
    total_ = plan.to_run();
    out_ << plan_text(plan) << std::endl;
  }

  void run_started(const PlannedRun& run, int attempt) override {
    if (numbers_.emplace(run.key, started_ + 1).second) ++started_;  // a retry keeps its number
    out_ << head(run) << " … started (attempt " << attempt << ")" << std::endl;
  }

  void run_progress(const PlannedRun&, const experiments::Progress&) override {}

  void run_ended(const PlannedRun& run, const RunOutcome& outcome) override {
    out_ << head(run) << " … " << outcome_text(outcome) << std::endl;
    if (!outcome.log.empty()) out_ << "        log: " << outcome.log << std::endl;
  }

  void message(const std::string& text) override { out_ << text << std::endl; }
  void sweep_ended() override {}

 private:
  // "[ 3/20] mlp ddp seed 1"
  std::string head(const PlannedRun& run) const {
    const std::string total = std::to_string(total_);
    std::string number = std::to_string(numbers_.at(run.key));
    if (number.size() < total.size()) number.insert(0, total.size() - number.size(), ' ');
    return "[" + number + "/" + total + "] " + experiments::label(run.run);
  }

  std::ostream& out_;
  std::size_t total_ = 0;
  std::size_t started_ = 0;
  std::map<std::string, std::size_t> numbers_;  // by key
};

}  // namespace

std::unique_ptr<Status> plain_status(std::ostream& out) {
  return std::make_unique<PlainStatus>(out);
}

}  // namespace trainyard::orchestrator
