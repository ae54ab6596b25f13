#include "reports/verdict_records.h"

#include <algorithm>

#include "reports/differences.h"
#include "reports/number_text.h"

namespace trainyard::reports {

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

// What was dropped, equal reasons once: "seed 0, seed 2: ddp failed: …". A reason of NOT TIMED is said
// already.
std::vector<std::string> left_out(const Verdict& verdict) {
  std::vector<std::pair<std::string, std::string>> runs_by_reason;  // in the order of the pairs
  for (const std::string& dropped : verdict.dropped) {
    if (verdict.word == Word::not_timed && dropped.find(verdict.reason) != std::string::npos) continue;
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
  for (const auto& [reason, runs] : runs_by_reason) texts.push_back(runs + reason);
  return texts;
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

std::string remarks_of(const Verdict& verdict) {
  std::string text = verdict.reason;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (verdict.scale == Scale::absolute) add("small loss: compared by differences");
  for (const std::string& note : verdict.notes) add(note);
  for (const std::string& dropped : left_out(verdict)) add("left out: " + dropped);
  return text;
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
      record.verified = verdict.verified;
      add_numbers(verdict, record);
      records.push_back(std::move(record));
    }
  }
  return records;
}

}  // namespace trainyard::reports
