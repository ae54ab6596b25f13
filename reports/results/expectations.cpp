#include "reports/results/expectations.h"

#include <map>
#include <set>

#include "base/error.h"
#include "reports/format/number_text.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

namespace {

struct Source {
  double db::FinalMetrics::*value;
  double scale = 1;  // from the database's unit to the file's
};

const Source& source_of(const std::string& metric) {
  using Final = db::FinalMetrics;
  static const std::map<std::string, Source> sources{
      {"train_loss", {&Final::train_loss}},
      {"validation_loss", {&Final::validation_loss}},
      {"test_loss", {&Final::test_loss}},
      {"train_accuracy", {&Final::train_accuracy}},
      {"validation_accuracy", {&Final::validation_accuracy}},
      {"test_accuracy", {&Final::test_accuracy}},
      {"train_perplexity", {&Final::train_perplexity}},
      {"validation_perplexity", {&Final::validation_perplexity}},
      {"test_perplexity", {&Final::test_perplexity}},
      {"train_psnr", {&Final::train_psnr}},
      {"validation_psnr", {&Final::validation_psnr}},
      {"test_psnr", {&Final::test_psnr}},
      {"test_bleu", {&Final::test_bleu}}};
  const auto found = sources.find(metric);
  if (found == sources.end()) throw InternalError("no metric is called " + metric);
  return found->second;
}

}  // namespace

std::string outcome_of(const CheckedExpectation& checked) {
  if (checked.values.empty()) return "no finished run";
  if (checked.holds()) return "✓ all as expected";
  return "✗ missed by " + std::to_string(checked.missed.size()) + " of " +
         std::to_string(checked.values.size());
}

std::vector<CheckedExpectation> check_expectations(const ReportData& data) {
  const std::set<std::string> planned(data.plan.keys.begin(), data.plan.keys.end());
  std::map<std::string, const db::FinalMetrics*> finals;
  for (const db::FinalMetrics& final : data.finals) finals[final.run_key] = &final;
  std::vector<CheckedExpectation> checked;
  for (const experiments::Expectation& expectation : data.plan.expect) {
    CheckedExpectation result{expectation, {}, {}};
    const std::string metric = experiments::metric_name(expectation);
    const Source& source = source_of(metric);
    for (const db::RunSummary& run : data.runs) {
      const auto final = finals.find(run.run_key);
      if (run.model != expectation.model || final == finals.end() || !planned.contains(run.run_key)) continue;
      const double value = source.scale * final->second->*source.value;
      result.values.push_back(value);
      if (experiments::holds(expectation, value)) continue;
      result.missed.push_back(name_of(run, run.model, data.plan.varied) + " (" + run.run_key + ") has " +
                              metric + " " + for_table(value));
    }
    checked.push_back(std::move(result));
  }
  return checked;
}

}  // namespace trainyard::reports
