#include "reports/explain/probe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "reports/explain/causes.h"
#include "reports/format/number_text.h"

namespace trainyard::reports {

namespace {

constexpr double equal = 1e-4;         // float32 leaves 4e-7, float16 3e-4, bfloat16 2e-3
constexpr double equal_share = 0.005;  // of a rank

std::string percent(double share) {
  constexpr double whole = 100;
  return plain_number(whole * share, 3) + " %";
}

std::string samples_text(const ProbedStep& step) {
  return joined(
      step.samples, [](double number) { return plain_number(number); }, " + ");
}

bool is_uneven(const ProbedStep& step) {
  const double all = std::accumulate(step.shares.begin(), step.shares.end(), 0.0);
  const auto ranks = static_cast<double>(step.shares.size());
  return step.unexplained < equal && std::ranges::any_of(step.shares, [&](double share) {
           return std::abs(share / all - 1 / ranks) > equal_share;
         });
}

// How the gradient of the arm differs. Empty if it does not.
std::string difference(const ProbedStep& step, const std::string& baseline) {
  if (step.distance < equal) return "";
  if (!step.equal_weights) return "the ranks have different weights, so their gradients are not comparable";
  if (step.inside > equal && step.own < equal)
    return "the gradient of the optimizer is that of rank 0 alone: the ranks exchange nothing before it, or "
           "before "
           "clipping";
  if (step.inside > equal)
    return percent(step.inside) +
           " of the gradient is not the mean of the ranks: a hook changes it, or it is exchanged before the "
           "last backward "
           "pass";
  if (is_uneven(step))
    return fmt::format(
        "each rank takes the mean of its own part, and these means count alike, but {} gives them {}. Try: "
        "{}",
        baseline, joined(step.shares, percent, " and "), even_means_advice);
  if (step.rest < equal) {
    const auto ranks = static_cast<double>(step.shares.size());
    return fmt::format(
        "the gradient is {} times that of {}{}", plain_number(step.factor, 4), baseline,
        std::abs(step.factor - ranks) < equal_share ? ", as if the ranks were added and not averaged" : "");
  }
  return fmt::format("{} of the gradient differs from that of {}, most in {}", percent(step.distance),
                     baseline, step.parameter);
}

}  // namespace

experiments::Probe probe_of(const ReportData& data, const db::RunSummary& baseline, const db::RunSummary& arm,
                            const std::string& folder) {
  const Facts first = facts_of(data, baseline), second = facts_of(data, arm);
  if (!first.recorded || !second.recorded)
    throw UserError(fmt::format("the probe needs scripts that the recorder has seen, and {} is not one",
                                first.recorded ? arm.strategy : baseline.strategy),
                    "record it (docs/python.md); strategies of trainyard have the parity check");
  if (first.ranks != 1)
    throw UserError(
        fmt::format("the probe compares with one process, but {} has {}", baseline.strategy, first.ranks));
  experiments::Probe made{.baseline = baseline.strategy,
                          .arm = arm.strategy,
                          .axes = arm.axes,
                          .folder = folder,
                          .samples = first.step_samples()};
  if (!(made.samples > 0)) throw UserError("the samples of a step were not observed in " + baseline.strategy);
  made.axes["model"] = arm.model;
  made.axes["seed"] = arm.seed;
  return made;
}

Table probe_table(const ReportData& data, const experiments::Probe& probe) {
  Table table;
  table.columns = {"step", right_column("samples of the ranks"), right_column("factor"),
                   right_column("difference")};
  std::vector<ProbedStep> steps;
  for (const db::RunSummary& run : data.runs)
    if (run.strategy == probe.baseline && run.in_latest_plan) steps = facts_of(data, run).probe;
  if (constexpr std::size_t trained = 3; steps.size() != trained)
    throw UserError("the recorder wrote nothing about the probe",
                    "use the recorder of this version of trainyard");
  for (std::size_t i = 0; i < steps.size(); ++i)
    table.rows.push_back({fmt::format("{}", i + 1), samples_text(steps[i]), plain_number(steps[i].factor, 4),
                          percent(steps[i].distance)});
  const std::size_t first = steps[0].distance < steps[1].distance ? 1 : 0;
  const std::string text = difference(steps[first], probe.baseline),
                    in_third = difference(steps[2], probe.baseline);
  table.notes.push_back(!text.empty()
                            ? fmt::format("in step {}: {}", first + 1, text)
                            : fmt::format("with the same samples and weights, {} has the gradients of {}",
                                          probe.arm, probe.baseline));
  if (text.empty() && !in_third.empty())  // the last rank has a smaller part
    table.notes.push_back(
        fmt::format("in step 3, with parts of {} samples: {}", samples_text(steps[2]), in_third));
  return table;
}

}  // namespace trainyard::reports
