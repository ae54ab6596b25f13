#include "reports/answer/verdict_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

constexpr std::array<VerdictBadge, 8> all_badges{
    {{VerdictKind::improves, "improves", "▲", "Improves"},
     {VerdictKind::no_change, "no-change", "=", "No change"},
     {VerdictKind::deteriorates, "deteriorates", "▼", "Deteriorates"},
     {VerdictKind::inconclusive, "inconclusive", "?", "Inconclusive"},
     {VerdictKind::interim, "interim", "…", "Interim"},
     {VerdictKind::no_data, "no-data", "∅", "No data"},
     {VerdictKind::not_comparable, "not-comparable", "≠", "Not comparable"},
     {VerdictKind::broken, "broken", "✗", "Broken"}}};

// Number of decimals that shows `width` to two significant digits, within limits.
int decimals_for(double width, int least, int most) {
  if (!(width > 0) || !std::isfinite(width)) return least;
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(width))), least, most);
}

// The distance of the margin from zero, as a change; of ratios on the side of a worse value.
double margin_size(const Verdict& verdict) {
  return verdict.margin ? verdict.margin->high : 0;
}

// Number of decimals of a change: from half the interval's width, with limits that depend on the unit.
int decimals_of(const Verdict& verdict) {
  const Interval interval = verdict.ci95.value_or(Interval{});
  const double half = (interval.high - interval.low) / 2;
  if (verdict.scale == Scale::log_ratio) return decimals_for(half * 10, 1, 2);
  if (verdict.scale != Scale::absolute) return decimals_for(half, 2, 3);
  return decimals_for(std::max(half, margin_size(verdict) / 5), 2, 6);
}

struct ScaleWords {
  const char* unit;
  const char* short_unit;
  const char* suffix;  // of an effect
};
constexpr std::array<ScaleWords, 4> scale_words{{{"percent", "%", " %"},
                                                 {"units of loss", "units of loss", " units of loss"},
                                                 {"percentage points", "points", " pp"},
                                                 {"dB", "dB", " dB"}}};

const ScaleWords& words_of(Scale scale) {
  return scale_words.at(static_cast<std::size_t>(scale));
}

// Fractions are in percentage points, BLEU is in points on a scale to 100, and metrics of the user are in their unit.
bool has_own_points(const Verdict& verdict) {
  return verdict.scale == Scale::points && !find_metric(verdict.metric).kind->is_fraction();
}

std::string suffix_of(const Verdict& verdict) {
  if (!has_own_points(verdict)) return words_of(verdict.scale).suffix;
  const MetricKind& kind = *find_metric(verdict.metric).kind;
  return kind.unit.empty() ? " points" : kind.suffix();
}

std::string text_of(const std::optional<Interval>& interval, const Verdict& verdict) {
  if (!interval) return "–";
  const int decimals = decimals_of(verdict);
  return fmt::format("[{}, {}]", signed_fixed(interval->low, decimals),
                     signed_fixed(interval->high, decimals));
}

// Dropped pairs, grouped by reason: "seed 0, seed 2: ddp failed: …".
std::vector<std::string> left_out(const Verdict& verdict) {
  std::vector<std::pair<std::string, std::vector<std::string>>> runs_by_reason;  // in the order of the pairs
  for (const std::string& dropped : verdict.dropped) {
    const std::size_t colon = std::min(dropped.find(": "), dropped.size());
    value_of_key(runs_by_reason, dropped.substr(colon)).push_back(dropped.substr(0, colon));
  }
  std::vector<std::string> texts;
  for (const auto& [reason, runs] : runs_by_reason) texts.push_back("left out: " + joined(runs) + reason);
  return texts;
}

bool says_what_is_missing(const Verdict& verdict) {
  return verdict.kind == VerdictKind::no_data;
}

}  // namespace

const char* unit_name(const Verdict& verdict) {
  return has_own_points(verdict) ? "points" : words_of(verdict.scale).unit;
}

std::string unit_of(Scale scale) {
  return words_of(scale).short_unit;
}

std::string effect_text(const Verdict& verdict) {
  return verdict.effect ? signed_fixed(*verdict.effect, decimals_of(verdict)) + suffix_of(verdict) : "–";
}

std::string interval_text(const Verdict& verdict) {
  return text_of(verdict.ci95, verdict);
}

std::string narrow_interval_text(const Verdict& verdict) {
  return text_of(verdict.ci90, verdict);
}

std::string margin_text(const Verdict& verdict) {
  const double size = margin_size(verdict);
  if (verdict.scale == Scale::log_ratio) return "a factor of " + plain_number(1 + size / 100, 5);
  return "±" + plain_number(size, verdict.scale == Scale::decibels ? 2 : 4) +
         (verdict.scale == Scale::absolute ? "" : suffix_of(verdict));
}

std::string p_with_hypothesis(const Verdict& verdict) {
  if (!verdict.p) return p_text(verdict.p);
  return fmt::format("{} ({})", p_text(verdict.p),
                     verdict.hypothesis.substr(0, verdict.hypothesis.find(' ')));
}

std::string p_text(std::optional<double> p) {
  if (!p) return "–";
  return *p < 0.0001 ? "< 0.0001" : fixed(*p, *p < 0.1 ? 4 : 3);
}

std::span<const VerdictBadge> badges() {
  return all_badges;
}

const VerdictBadge& badge_of(VerdictKind kind) {
  return *std::ranges::find(all_badges, kind, &VerdictBadge::kind);
}

std::string margin_of(const Metric& metric, const experiments::Margins& margins) {
  if (const auto own = margins.own.find(metric.own_name); own != margins.own.end())
    return fmt::format("margin ±{}{}", plain_number(own->second), metric.kind->suffix());
  switch (metric.kind->margin) {
    case Margin::points:
      return fmt::format("margin ±{} {}", plain_number(margins.accuracy_points),
                         metric.kind->is_fraction() ? "pp" : "points");
    case Margin::decibels:
      return fmt::format("margin ±{} dB", plain_number(psnr_margin(margins.loss), 2));
    default:
      return "margin × " + plain_number(metric.kind->is_cost() ? margins.time : margins.loss.ratio);
  }
}

std::string phase_and_metric(const Verdict& verdict) {
  std::string text = verdict.metric;
  std::ranges::replace(text, '-', ' ');
  return text;
}

std::vector<std::string> marks_of(const std::vector<Caveat>& caveats) {
  std::vector<std::string> marks;
  for (const Caveat& caveat : caveats) add_new(marks, caveat.mark);
  return marks;
}

std::string marks_text(const std::vector<Caveat>& caveats) {
  return caveats.empty() ? "" : ", " + joined(marks_of(caveats));
}

std::string caveat_text(const Caveat& caveat) {
  return fmt::format("{}: {}", caveat.mark, caveat.text);
}

std::string later_text(const Verdict& verdict) {
  if (!verdict.later) return "";
  return fmt::format("all {}: {}{} {}", verdict.later->n,
                     signed_fixed(verdict.later->effect, decimals_of(verdict)), suffix_of(verdict),
                     text_of(verdict.later->ci95, verdict));
}

std::string word_with_reason(const Verdict& verdict) {
  std::string text = text_of(verdict.kind);
  if (says_what_is_missing(verdict)) text += ": " + verdict.reason.text;
  for (const std::string& note : verdict.notes)
    if (note.starts_with(decided_after)) text += ", " + note;
  if (verdict.later) text += "; " + later_text(verdict);
  for (const Caveat& caveat : verdict.caveats) text += "; " + caveat_text(caveat);
  return text;
}

namespace {

std::vector<std::string> remark_parts(const Verdict& verdict) {
  std::vector<std::string> parts;
  if (verdict.identical) {
    parts.emplace_back(
        "identical by construction, apart from rounding: same first weights, same global batches");
  } else if (!verdict.reason.text.empty()) {
    parts.push_back(verdict.reason.text);
  }
  for (const Caveat& caveat : verdict.caveats) parts.push_back(caveat_text(caveat));
  if (verdict.decision)
    parts.push_back(fmt::format("the {} % interval {} decides{}",
                                plain_number(100 * verdict.decision->confidence, 4),
                                text_of(verdict.decision->interval, verdict),
                                is_decided(verdict.kind) ? "" : ", by Holm's correction"));
  if (verdict.later) parts.push_back(later_text(verdict));
  if (verdict.scale == Scale::absolute) parts.emplace_back("small loss: compared by differences");
  parts.insert(parts.end(), verdict.notes.begin(), verdict.notes.end());
  std::ranges::copy(left_out(verdict), std::back_inserter(parts));
  return parts;
}

}  // namespace

std::string remarks_of(const Verdict& verdict) {
  return joined(remark_parts(verdict), {}, "; ");
}

std::vector<std::string> grouped_remarks(const std::vector<Comparison>& comparisons) {
  using MetricsByArm = std::vector<std::pair<std::string, std::vector<std::string>>>;
  std::map<std::string, std::size_t> metrics_of_arm;
  std::vector<std::pair<std::string, MetricsByArm>> not_verified_arms, remarks;  // by text
  for (const Comparison& comparison : comparisons)
    for (const Cell& cell : comparison.cells)
      for (const Verdict& verdict : cell.verdicts) {
        const std::string arm = cell.label + " " + verdict.arm;
        ++metrics_of_arm[arm];
        const auto add = [&](auto& rows, const std::string& text) {
          value_of_key(value_of_key(rows, text), arm).push_back(phase_and_metric(verdict));
        };
        if (const std::string why = not_verified(*cell.find_arm(verdict.arm)); !why.empty())
          add(not_verified_arms, why);
        std::string start = says_what_is_missing(verdict) ? text_of(verdict.kind) + ": " : "";
        for (const std::string& part : remark_parts(verdict)) add(remarks, std::exchange(start, "") + part);
      }
  std::vector<std::string> lines;
  for (const auto* rows : {&not_verified_arms, &remarks})
    for (const auto& [text, arms] : *rows) {
      const auto& [arm, metrics] = arms.front();
      const bool all = metrics.size() > 1 && metrics.size() == metrics_of_arm.at(arm);
      const std::string others = arms.size() == 1 ? "" : ", and " + counted(arms.size() - 1, "other arm");
      lines.push_back(fmt::format("{} [{}: {}{}]", text, arm,
                                  all ? fmt::format("all {} metrics", metrics.size()) : joined(metrics),
                                  others));
    }
  return lines;
}

}  // namespace trainyard::reports
