#include "reports/verdicts/verdict_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/verdicts/differences.h"

namespace trainyard::reports {

namespace {

constexpr std::array<VerdictBadge, 9> all_looks{
    {{VerdictKind::improves, "improves", "▲", "Improves"},
     {VerdictKind::no_change, "no-change", "=", "No change"},
     {VerdictKind::deteriorates, "deteriorates", "▼", "Deteriorates"},
     {VerdictKind::inconclusive, "inconclusive", "?", "Inconclusive"},
     {VerdictKind::interim, "interim", "…", "Interim"},
     {VerdictKind::not_timed, "not-timed", "–", "Not timed"},
     {VerdictKind::no_data, "no-data", "∅", "No data"},
     {VerdictKind::not_comparable, "not-comparable", "≠", "Not comparable"},
     {VerdictKind::broken, "broken", "✗", "Broken"}}};

// Number of decimals that shows `width` to two significant digits, within limits.
int decimals_for(double width, int least, int most) {
  if (!(width > 0) || !std::isfinite(width)) return least;
  return std::clamp(1 - static_cast<int>(std::floor(std::log10(width))), least, most);
}

// Number of decimals of a change: from half the interval's width, with limits that depend on the unit.
int decimals_of(const Verdict& verdict) {
  const Interval interval = verdict.estimate ? change_of(verdict, 0.95).interval : Interval{};
  const double half = (interval.high - interval.low) / 2;
  switch (verdict.scale) {
    case Scale::log_ratio:
      return decimals_for(half * 10, 1, 2);
    case Scale::points:
    case Scale::decibels:
      return decimals_for(half, 2, 3);
    case Scale::absolute:
      return decimals_for(std::max(half, verdict.margin / 5), 2, 6);
  }
  return 2;
}

// Accuracies are in percentage points, BLEU is in points on a scale to 100.
std::string points_of(const Verdict& verdict) {
  return find_metric(verdict.metric).kind == MetricKind::bleu ? " points" : " pp";
}

}  // namespace

std::string effect_text(const Verdict& verdict) {
  if (!verdict.estimate && !verdict.difference) return "–";
  const double change =
      verdict.estimate ? change_of(verdict, 0.95).value : as_change(verdict.scale, *verdict.difference);
  std::string number = signed_fixed(change, decimals_of(verdict));
  switch (verdict.scale) {
    case Scale::log_ratio:
      return number + " %";
    case Scale::points:
      return number + points_of(verdict);
    case Scale::decibels:
      return number + " dB";
    case Scale::absolute:
      return number + " absolute";
  }
  return number;
}

std::string interval_text(const Verdict& verdict, double level) {
  if (!verdict.estimate) return "–";
  const Interval interval = change_of(verdict, level).interval;
  const int decimals = decimals_of(verdict);
  return fmt::format("[{}, {}]", signed_fixed(interval.low, decimals), signed_fixed(interval.high, decimals));
}

std::string margin_text(const Verdict& verdict) {
  switch (verdict.scale) {
    case Scale::log_ratio:
      return "a factor of " + plain_number(std::exp(verdict.margin), 5);
    case Scale::points:
      return fmt::format("±{}{}", plain_number(verdict.margin, 4), points_of(verdict));
    case Scale::decibels:
      return "±" + plain_number(verdict.margin, 2) + " dB";
    case Scale::absolute:
      return "±" + plain_number(verdict.margin, 4);
  }
  return "";
}

std::string speed_text(const Verdict& verdict) {
  if (verdict.scale != Scale::log_ratio || !verdict.estimate) return "";
  return fixed(std::exp(verdict.estimate->mean), 2) + " × as fast";
}

std::string p_with_hypothesis(std::optional<double> p, const std::string& hypothesis) {
  if (!p) return p_text(p);
  return fmt::format("{} ({})", p_text(p), hypothesis.substr(0, hypothesis.find(' ')));
}

std::string p_text(std::optional<double> p) {
  if (!p) return "–";
  return *p < 0.0001 ? "< 0.0001" : fixed(*p, *p < 0.1 ? 4 : 3);
}

std::span<const VerdictBadge> looks() {
  return all_looks;
}

const VerdictBadge& badge_of(VerdictKind word) {
  return *std::ranges::find(all_looks, word, &VerdictBadge::word);
}

std::string margin_of(const Metric& metric, const experiments::Margins& margins) {
  switch (metric.kind) {
    case MetricKind::accuracy:
      return "margin ±" + plain_number(margins.accuracy_points) + " pp";
    case MetricKind::loss:
      return "margin × " + plain_number(margins.loss.ratio);
    case MetricKind::time:
    case MetricKind::energy:
      return "margin × " + plain_number(margins.time);
    case MetricKind::perplexity:
      return "margin × " + plain_number(margins.loss.ratio);
    case MetricKind::psnr:
      return "margin ±" + plain_number(psnr_margin(margins.loss), 2) + " dB";
    case MetricKind::bleu:
      return "margin ±" + plain_number(margins.accuracy_points) + " points";
  }
  return "";
}

namespace {

void add_numbers(const Verdict& verdict, VerdictRecord& record) {
  record.unit = unit_name(verdict);
  record.effect_text = effect_text(verdict);
  record.ci95_text = interval_text(verdict, 0.95);
  record.ci90_text = interval_text(verdict, 0.90);
  if (verdict.difference) record.effect = as_change(verdict.scale, *verdict.difference);
  if (verdict.estimate) {
    const Change change = change_of(verdict, 0.95);
    record.effect = change.value;
    record.ci95 = change.interval;
    record.ci90 = change_of(verdict, 0.90).interval;
  }
  record.p = verdict.p_value();
  record.hypothesis = verdict.hypothesis();
  if (verdict.tested) record.level = verdict.level;
  record.n = verdict.n;
  record.seeds_needed = verdict.seeds_needed;
  record.cannot_be_resolved = verdict.cannot_be_resolved;
}

// Dropped pairs, grouped by reason: "seed 0, seed 2: ddp failed: …". The reason of NOT TIMED is not repeated.
std::vector<std::string> left_out(const Verdict& verdict) {
  std::vector<std::pair<std::string, std::string>> runs_by_reason;  // in the order of the pairs
  for (const std::string& dropped : verdict.dropped) {
    if (verdict.word == VerdictKind::not_timed && dropped.find(verdict.reason.text) != std::string::npos)
      continue;
    const std::size_t colon = std::min(dropped.find(": "), dropped.size());
    const std::string reason = dropped.substr(colon);
    auto known = std::ranges::find(runs_by_reason, reason, &std::pair<std::string, std::string>::first);
    if (known == runs_by_reason.end()) {
      runs_by_reason.emplace_back(reason, dropped.substr(0, colon));
    } else {
      known->second += ", " + dropped.substr(0, colon);
    }
  }
  std::vector<std::string> texts;
  texts.reserve(runs_by_reason.size());
  for (const auto& [reason, runs] : runs_by_reason) texts.push_back(runs + reason);
  return texts;
}

bool says_what_is_missing(VerdictKind word) {
  return word == VerdictKind::not_timed || word == VerdictKind::no_data;
}

std::string with_reason(VerdictKind word, const std::vector<std::string>& remarks,
                        const std::vector<Caveat>& caveats) {
  std::string text = text_of(word);
  if (says_what_is_missing(word)) text += ": " + remarks.front();
  for (const std::string& remark : remarks)
    if (remark.starts_with(decided_at_look)) text += ", " + remark;
  for (const Caveat& caveat : caveats) text += "; " + caveat_text(caveat);
  return text;
}

std::string arm_of(const VerdictRecord& record) {
  return fmt::format("{} {}", record.label, record.arm);
}

// One text, with its arms and the metrics of each.
struct Remark {
  std::string text;
  std::vector<std::pair<std::string, std::vector<std::string>>> metrics_by_arm;
};

void add_remark(std::vector<Remark>& remarks, const std::string& text, const VerdictRecord& record) {
  auto remark = std::ranges::find(remarks, text, &Remark::text);
  if (remark == remarks.end()) remark = remarks.insert(remarks.end(), {text, {}});
  auto& arms = remark->metrics_by_arm;
  if (arms.empty() || arms.back().first != arm_of(record)) arms.push_back({arm_of(record), {}});
  arms.back().second.push_back(fmt::format("{} {}", record.phase, record.metric));
}

std::string and_others(const Remark& remark) {
  const std::size_t others = remark.metrics_by_arm.size() - 1;
  return others == 0 ? "" : " and " + counted(others, "other arm");
}

std::string arms_text(const Remark& remark) {
  return remark.metrics_by_arm.front().first + and_others(remark);
}

// "MLP ddp: train loss, test loss", "MLP ddp: all 8 metrics, and 5 other arms".
std::string places_text(const Remark& remark, const std::map<std::string, std::size_t>& metrics_of_arm) {
  const auto& [arm, metrics] = remark.metrics_by_arm.front();
  const bool all = metrics.size() > 1 && metrics.size() == metrics_of_arm.at(arm);
  const std::string others = and_others(remark);
  return fmt::format("{}: {}{}", arm, all ? fmt::format("all {} metrics", metrics.size()) : joined(metrics),
                     others.empty() ? "" : "," + others);
}

std::optional<double> known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

void add_evidence(const Verdict& verdict, VerdictRecord& record) {
  record.left_out = verdict.dropped;
  record.baseline_mean = verdict.n > 0 ? known(verdict.baseline_mean) : std::nullopt;
  record.arm_mean = verdict.n > 0 ? known(verdict.arm_mean) : std::nullopt;
  if (verdict.margin > 0) record.margin = margin_as_change(verdict);
  record.look = verdict.look;
  record.looks = verdict.looks;
  record.alpha = verdict.alpha;
  record.baseline_runs = verdict.baseline_runs;
  record.arm_runs = verdict.arm_runs;
}

}  // namespace

const char* unit_name(const Verdict& verdict) {
  switch (verdict.scale) {
    case Scale::log_ratio:
      return "percent";
    case Scale::points:
      return find_metric(verdict.metric).kind == MetricKind::bleu ? "points" : "percentage points";
    case Scale::decibels:
      return "dB";
    case Scale::absolute:
      return "units of loss";
  }
  return "";
}

std::vector<std::string> marks_of(const std::vector<Caveat>& caveats) {
  std::vector<std::string> marks;
  for (const Caveat& caveat : caveats)
    if (std::ranges::find(marks, caveat.mark) == marks.end()) marks.push_back(caveat.mark);
  return marks;
}

std::string marks_text(const std::vector<Caveat>& caveats) {
  std::string text;
  for (const std::string& mark : marks_of(caveats)) text += ", " + mark;
  return text;
}

std::string caveat_text(const Caveat& caveat) {
  return fmt::format("{}: {}", caveat.mark, caveat.text);
}

std::string word_with_reason(const Verdict& verdict) {
  return with_reason(verdict.word, remark_parts(verdict), verdict.caveats);
}

std::string word_with_reason(const VerdictRecord& record) {
  return with_reason(record.verdict, record.remarks, record.caveats);
}

std::vector<std::string> remark_parts(const Verdict& verdict) {
  std::vector<std::string> parts;
  if (!verdict.reason.text.empty()) parts.push_back(verdict.reason.text);
  for (const Caveat& caveat : verdict.caveats) parts.push_back(caveat_text(caveat));
  if (verdict.scale == Scale::absolute) parts.emplace_back("small loss: compared by differences");
  parts.insert(parts.end(), verdict.notes.begin(), verdict.notes.end());
  for (const std::string& dropped : left_out(verdict)) parts.push_back("left out: " + dropped);
  return parts;
}

std::string remarks_of(const Verdict& verdict) {
  return joined(remark_parts(verdict), {}, "; ");
}

std::vector<std::string> grouped_remarks(const std::vector<VerdictRecord>& records) {
  std::map<std::string, std::size_t> metrics_of_arm;
  for (const VerdictRecord& record : records) ++metrics_of_arm[arm_of(record)];
  std::vector<Remark> arms;
  std::vector<Remark> remarks;
  for (const VerdictRecord& record : records) {
    if (!record.not_verified.empty()) add_remark(arms, record.not_verified, record);
    for (const std::string& part : record.remarks) {
      const bool why = says_what_is_missing(record.verdict) && &part == &record.remarks.front();
      add_remark(remarks, (why ? text_of(record.verdict) + ": " : "") + part, record);
    }
  }
  std::vector<std::string> lines;
  lines.reserve(arms.size() + remarks.size());
  for (const Remark& remark : arms) lines.push_back(fmt::format("{} [{}]", remark.text, arms_text(remark)));
  for (const Remark& remark : remarks)
    lines.push_back(fmt::format("{} [{}]", remark.text, places_text(remark, metrics_of_arm)));
  return lines;
}

std::vector<VerdictRecord> verdict_records(const Comparison& comparison) {
  std::vector<VerdictRecord> records;
  for (const CellVerdicts& judged : comparison.cells) {
    for (const Verdict& verdict : judged.verdicts) {
      const std::size_t dash = verdict.metric.find('-');
      VerdictRecord record;
      record.model = judged.cell.model;
      record.label = judged.cell.label;
      record.further = judged.cell.further;
      record.phase = verdict.metric.substr(0, dash);
      record.metric = verdict.metric.substr(dash + 1);
      record.baseline = judged.cell.baseline.value;
      record.arm = verdict.arm;
      record.verdict = verdict.word;
      record.reason = remarks_of(verdict);
      record.caveats = verdict.caveats;
      record.remarks = remark_parts(verdict);
      record.not_verified = judged.not_verified(verdict.arm);
      record.verified = verdict.verified;
      add_evidence(verdict, record);
      add_numbers(verdict, record);
      records.push_back(std::move(record));
    }
  }
  return records;
}

}  // namespace trainyard::reports
