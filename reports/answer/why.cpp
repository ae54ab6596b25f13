#include "reports/answer/why.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

constexpr double least_part = 0.01;  // of an epoch of the baseline
constexpr double percent = 100;

std::string part_text(const PartChange& change) {
  const std::string interval = change.ci95 ? fmt::format(" [{}, {}]", fixed(percent * change.ci95->low, 1),
                                                         fixed(percent * change.ci95->high, 1))
                                           : "";
  return fmt::format("{} {} %{}", with_spaces(change.part), signed_fixed(percent * change.change, 1),
                     interval);
}

bool has_moved(const Verdict& verdict) {
  return verdict.kind == VerdictKind::improves || verdict.kind == VerdictKind::deteriorates;
}

bool is_time(const Verdict& verdict) {
  return find_metric(verdict.metric).kind->is_cost();
}

Why why_of(const Comparison& comparison, const Cell& cell, const Arm& arm) {
  Why why{.arm = cell.label + " " + arm.value,
          .baseline = baseline_text(comparison.compare),
          .changes = {},
          .causes = {},
          .parts = {},
          .open = {},
          .refusal = refusal_of(arm)};
  if (!why.refusal.empty() && !arm.comparability.refused.empty())
    why.refusal += ": " + joined(arm.comparability.refused, {}, "; ");
  bool result_moved = false, time_moved = false, has_pairs = false;
  std::vector<std::string> left_out;
  for (const Metric* metric : published_in(comparison)) {
    const Verdict* verdict = cell.find(arm.value, metric->name);
    if (verdict == nullptr) continue;
    has_pairs = has_pairs || verdict->effect;
    if (left_out.empty()) left_out = verdict->dropped;
    if (!has_moved(*verdict)) continue;
    (is_time(*verdict) ? time_moved : result_moved) = true;
    why.changes.push_back(fmt::format("{}: {}{} {} {}", phase_and_metric(*verdict), text_of(verdict->kind),
                                      marks_text(verdict->caveats), effect_text(*verdict),
                                      interval_text(*verdict)));
  }
  if (why.refusal.empty() && !has_pairs && !left_out.empty())
    why.refusal = "no pair of runs can be compared: " + joined(left_out, {}, "; ");
  const std::vector<Cause> causes = arm.causes.value_or(std::vector<Cause>());
  for (const Cause& cause : causes)
    why.causes.push_back(fmt::format("{}: {}. Try: {}", cause.name, cause.evidence, cause.advice));
  if (result_moved)
    for (const std::string& declared : arm.comparability.declared)
      why.causes.push_back("declared: " + declared);
  if (time_moved && arm.part_changes)
    for (const PartChange& change : *arm.part_changes)
      if (std::abs(change.change) >= least_part) why.parts.push_back(part_text(change));
  const auto has_cause = [&](bool of_times) {
    return std::ranges::find(causes, of_times, &Cause::of_times) != causes.end();
  };
  std::vector<std::string> open;  // nothing that was not looked for
  if (result_moved && arm.causes && !has_cause(false) && arm.comparability.declared.empty())
    open.emplace_back("the result");
  if (time_moved && arm.part_changes && why.parts.empty() && !has_cause(true)) open.emplace_back("the time");
  if (!open.empty()) why.open = fmt::format("not explained: the records show no cause of {}", all_of(open));
  return why;
}

}  // namespace

std::vector<std::string> lines_of(const Why& why) {
  std::vector<std::string> lines = why.changes;
  lines.insert(lines.end(), why.causes.begin(), why.causes.end());
  if (!why.parts.empty())
    lines.push_back(
        fmt::format("parts of an epoch, in % of that of {}: {}", why.baseline, joined(why.parts)));
  if (!why.open.empty()) lines.push_back(why.open);
  return lines;
}

std::string why_text(const std::vector<Comparison>& comparisons, std::size_t width, bool all) {
  std::string text;
  for (const Comparison& comparison : comparisons)
    for (const Why& why : whys(comparison)) {
      if (why.is_silent() && !all) continue;
      text += paragraph(fmt::format("{} against {}", why.arm, why.baseline), width);
      for (const std::string& line : lines_of(why)) text += paragraph("- " + line, width);
      if (all && !why.refusal.empty())
        text += paragraph("- " + why.refusal, width);
      else if (why.is_silent() && why.changes.empty())
        text += paragraph("- no change was decided, and the records show no cause that explain knows", width);
    }
  return text;
}

std::vector<Why> whys(const Comparison& comparison) {
  std::vector<Why> all;
  for (const Cell& cell : comparison.cells)
    for (const Arm& arm : cell.arms) all.push_back(why_of(comparison, cell, arm));
  return all;
}

}  // namespace trainyard::reports
