#include "reports/document/report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/document/report_members.h"

namespace trainyard::reports {

std::string text_of(VerdictKind kind) {
  return std::string(names_of<VerdictKind>.at(static_cast<std::size_t>(kind)));
}

bool is_decided(VerdictKind kind) {
  return kind == VerdictKind::improves || kind == VerdictKind::no_change || kind == VerdictKind::deteriorates;
}

std::vector<const Arm*> Cell::compared() const {
  std::vector<const Arm*> all{&baseline};
  for (const Arm& arm : arms) all.push_back(&arm);
  return all;
}

const Verdict* Cell::find(const std::string& arm, const std::string& metric) const {
  const auto found = std::ranges::find_if(
      verdicts, [&](const Verdict& verdict) { return verdict.arm == arm && verdict.metric == metric; });
  return found == verdicts.end() ? nullptr : &*found;
}

const Verdict* Cell::find_with_margin(const std::string& metric) const {
  const auto found = std::ranges::find_if(
      verdicts, [&](const Verdict& verdict) { return verdict.metric == metric && verdict.margin; });
  return found == verdicts.end() ? nullptr : &*found;
}

const Arm* Cell::find_arm(const std::string& value) const {
  return row_or_null(arms, &Arm::value, value);
}

std::string refusal_of(const Arm& arm) {
  if (!arm.comparability.broken.empty()) return text_of(VerdictKind::broken);
  return arm.comparability.refused.empty() ? "" : text_of(VerdictKind::not_comparable);
}

double value_in(const RunRow& run, const std::string& column) {
  const auto found = run.values.find(column);
  return found == run.values.end() ? NAN : found->second;
}

std::string setting_text(const RunRow& run, const std::string& name) {
  const auto found = run.settings.find(name);
  if (found == run.settings.end()) return "";
  const auto* text = std::get_if<std::string>(&found->second);
  return text != nullptr ? *text : to_text(found->second);
}

std::string least_seeds(std::optional<int> seeds) {
  return seeds ? fmt::format("at least {}", *seeds) : fmt::format("more than {}", most_seeds_planned);
}

std::string not_verified(const Arm& arm) {
  const Comparability& found = arm.comparability;
  return found.verified() ? ""
                          : "NOT VERIFIED: the records do not state " + joined(found.not_stated, {}, "; ");
}

std::vector<std::string> run_keys(const Cell& cell) {
  std::vector<std::string> keys;
  std::vector<const Arm*> arms = cell.compared();
  for (const Arm& limit : cell.limits) arms.push_back(&limit);
  for (const Arm* arm : arms)
    for (const ArmRun& run : arm->runs) keys.push_back(run.key);
  return keys;
}

bool has_verdicts(const Comparison& comparison) {
  return std::ranges::any_of(comparison.cells, [](const Cell& cell) { return !cell.verdicts.empty(); });
}

std::vector<const Metric*> judged_in(const Comparison& comparison) {
  std::set<std::string> names;
  for (const Cell& cell : comparison.cells)
    for (const Verdict& verdict : cell.verdicts) names.insert(verdict.metric);
  std::vector<const Metric*> judged;
  for (const Metric& metric : metrics())
    if (metric.task.empty() && names.contains(metric.name)) judged.push_back(&metric);
  return judged;
}

std::vector<const Metric*> published_in(const Comparison& comparison) {
  std::vector<const Metric*> published = judged_in(comparison);
  std::erase_if(published, [](const Metric* metric) { return !metric->published; });
  return published;
}

std::string baseline_text(const experiments::Compare& compare) {
  const bool is_name = compare.axis == "strategy" || compare.axis == "model" || compare.axis == "group";
  return is_name ? compare.baseline : fmt::format("{} {}", compare.axis, compare.baseline);
}

double psnr_margin(const experiments::LossMargin& margin) {
  return 10 * std::log10(margin.ratio);
}

std::string experiments_in_sql(const Report& report) {
  const auto quoted = [](const std::string& name) {
    std::string text;
    for (const char character : name) text += character == '\'' ? "''" : std::string(1, character);
    return "'" + text + "'";
  };
  return "(" + joined(report.experiments, quoted) + ")";
}

std::string slug_of(const std::string& text) {
  std::string slug;
  for (const char character : text) {
    const bool upper = character >= 'A' && character <= 'Z';
    const bool plain = (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') ||
                       (character == '.' && !slug.empty());
    if (upper) {
      slug += static_cast<char>(character - 'A' + 'a');
    } else if (plain) {
      slug += character;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "cell" : slug;
}

std::string unique_slug(const std::string& slug, std::set<std::string>& used) {
  std::string unique = slug;
  for (int i = 2; !used.insert(unique).second; ++i) unique = fmt::format("{}-{}", slug, i);
  return unique;
}

}  // namespace trainyard::reports
