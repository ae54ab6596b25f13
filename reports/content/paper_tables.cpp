#include "reports/content/paper_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/format/table.h"
#include "reports/results/metrics.h"
#include "reports/verdicts/verdict_text.h"

namespace trainyard::reports {

namespace {

std::string row_of(VerdictKind word) {
  switch (word) {
    case VerdictKind::improves:
      return "improves";
    case VerdictKind::no_change:
      return "no change";
    case VerdictKind::deteriorates:
      return "deteriorates";
    case VerdictKind::inconclusive:
      return "inconclusive";
    case VerdictKind::interim:
    case VerdictKind::not_timed:
    case VerdictKind::no_data:
    case VerdictKind::not_comparable:
    case VerdictKind::broken:
      return "no verdict";
  }
  return "";
}

// Whether training improves and validation deteriorates, or the reverse.
bool contradicts(const CellVerdicts& cell, const Verdict& published) {
  const std::string training = "train-" + published.metric.substr(published.metric.find('-') + 1);
  const Verdict* other = cell.find(published.arm, training);
  if (other == nullptr || other->metric == published.metric) return false;
  return (other->word == VerdictKind::improves && published.word == VerdictKind::deteriorates) ||
         (other->word == VerdictKind::deteriorates && published.word == VerdictKind::improves);
}

PublishedTable::Row& find_row(PublishedTable& table, const std::string& name) {
  return std::ranges::find(table.rows, name, &std::pair<std::string, PublishedTable::Row>::first)->second;
}

std::string listed(const PublishedTable::Row& row, MetricKind kind) {
  const auto found = row.find(kind);
  std::string text;
  if (found == row.end()) return "–";
  for (const std::string& name : found->second) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "–" : text;
}

// " Experiment: first." in a report of several.
std::string of_experiment(const Comparison& comparison) {
  return comparison.experiment.empty() ? "" : " Experiment: " + comparison.experiment + ".";
}

PaperTable published_shape(const Comparison& comparison) {
  const PublishedTable published = published_table(comparison);
  PaperTable paper;
  paper.slug = "verdicts" + comparison.slug_end;
  paper.table.columns = {"", left_column("Accuracy", 0.235), left_column("Loss", 0.235),
                         left_column("Time", 0.235)};
  paper.table.caption = fmt::format(
      "Models by verdict on validation accuracy, validation loss and training time per epoch: each {} "
      "against {}.{}{}",
      comparison.compare.axis, baseline_text(comparison.compare), of_experiment(comparison),
      published.marked ? " † The training metric has the opposite verdict." : "");
  for (const auto& [name, row] : published.rows) {
    paper.table.rows.push_back({name, listed(row, MetricKind::accuracy), listed(row, MetricKind::loss),
                                listed(row, MetricKind::time)});
  }
  return paper;
}

TableRow effect_row(const Verdict& verdict) {
  return {find_metric(verdict.metric).title,
          word_with_reason(verdict),
          effect_text(verdict),
          interval_text(verdict, 0.95),
          interval_text(verdict, 0.90),
          p_with_hypothesis(verdict.p_value(), verdict.hypothesis()),
          std::int64_t{verdict.n}};
}

PaperTable effects(const Comparison& comparison) {
  PaperTable paper;
  paper.slug = "effects" + comparison.slug_end;
  paper.long_table = true;
  paper.table.columns = effect_columns();
  paper.table.caption = fmt::format(
      "All effects against {}, with 95 % and 90 % confidence intervals. p: after Holm's correction, with its "
      "hypothesis (the arm is better or worse than the margin, or inside it). n: number of {}",
      baseline_text(comparison.compare),
      (comparison.compare.pair.empty() ? "runs in the smaller arm." : "pairs.") + of_experiment(comparison));
  for (const CellVerdicts& judged : comparison.cells) {
    std::string heading;
    for (const Verdict& verdict : judged.verdicts) {
      const std::string why = judged.not_verified(verdict.arm);
      const std::string arm =
          fmt::format("{}: {}{}", judged.cell.label, verdict.arm, why.empty() ? "" : ". " + why + ".");
      if (arm != heading) paper.table.rows.push_back({heading = arm});
      paper.table.rows.push_back(effect_row(verdict));
    }
  }
  return paper;
}

TableRow number_row(const Comparison& comparison, const CellVerdicts& judged, const Verdict& verdict) {
  TableRow row{comparison.compare.axis, comparison.compare.baseline, judged.cell.label, verdict.arm,
               verdict.metric,          text_of(verdict.word),       unit_name(verdict)};
  const double none = std::nan("");
  const bool known = verdict.estimate.has_value();
  Change wide = known ? change_of(verdict, 0.95) : Change{none, {none, none}};
  if (verdict.difference) wide.value = as_change(verdict.scale, *verdict.difference);
  const Interval narrow = known ? change_of(verdict, 0.90).interval : Interval{none, none};
  const Interval margin = known ? margin_as_change(verdict) : Interval{none, none};
  for (const double value : {wide.value, wide.interval.low, wide.interval.high, narrow.low, narrow.high,
                             margin.low, margin.high, verdict.p_value().value_or(none)})
    row.emplace_back(value);
  row.emplace_back(std::int64_t{verdict.n});
  row.emplace_back(verdict.reason.text);
  row.emplace_back(verdict.hypothesis());
  std::vector<std::string> caveats;
  for (const Caveat& caveat : verdict.caveats) caveats.push_back(caveat_text(caveat));
  row.emplace_back(joined(caveats, {}, "; "));
  return row;
}

}  // namespace

std::vector<TableColumn> effect_columns() {
  return {left_column("Metric", 0.17),
          left_column("Verdict", 0.195),
          right_column("Effect", 0.112),
          right_column("95 % interval", 0.174),
          right_column("90 % interval", 0.174),
          right_column("p", 0.094),
          right_column("n", 0.024)};
}

PublishedTable published_table(const Comparison& comparison) {
  PublishedTable table;
  for (const char* name : {"improves", "no change", "deteriorates", "inconclusive", "no verdict"}) {
    table.rows.emplace_back(name, PublishedTable::Row{});
  }
  const bool many_arms = std::ranges::any_of(
      comparison.cells, [](const CellVerdicts& cell) { return cell.cell.arms.size() > 1; });
  for (const CellVerdicts& cell : comparison.cells) {
    for (const Verdict& verdict : cell.verdicts) {
      const Metric& metric = find_metric(verdict.metric);
      if (!metric.published) continue;
      const bool mark = contradicts(cell, verdict);
      std::string name = cell.cell.label + (many_arms ? " (" + verdict.arm + ")" : "");
      if (mark) name += std::string(" ") + contradiction_mark;
      if (row_of(verdict.word) == "no verdict") name += " " + text_of(verdict.word);
      name += marks_text(verdict.caveats);
      table.marked = table.marked || mark;
      find_row(table, row_of(verdict.word))[metric.kind].push_back(std::move(name));
    }
  }
  return table;
}

std::vector<PaperTable> paper_tables(const std::vector<Comparison>& comparisons) {
  std::vector<PaperTable> papers;
  for (const Comparison& comparison : comparisons) {
    if (!has_verdicts(comparison)) continue;
    papers.push_back(published_shape(comparison));
    papers.push_back(effects(comparison));
  }
  std::set<std::string> used;  // a slug is a file and a label
  for (PaperTable& paper : papers) {
    const std::string slug = paper.slug;
    for (int i = 2; !used.insert(paper.slug).second; ++i) paper.slug = fmt::format("{}-{}", slug, i);
  }
  return papers;
}

std::vector<std::pair<std::string, std::string>> latex_files(const PaperTable& paper) {
  const std::string label = "tab:" + paper.slug;
  const LatexLayout layout = paper.long_table ? LatexLayout::long_table : LatexLayout::short_table;
  return {{paper.slug, latex_table(paper.table, label, layout)},
          {paper.slug + "-two-column", latex_table(paper.table, label, LatexLayout::two_columns)}};
}

Table verdict_numbers(const std::vector<Comparison>& comparisons) {
  Table table;
  table.columns = {"axis",   "baseline", "cell",    "arm",        "metric",  "verdict",    "unit",
                   "effect", "low_95",   "high_95", "low_90",     "high_90", "margin_low", "margin_high",
                   "p",      "n",        "reason",  "hypothesis", "caveats"};
  for (const Comparison& comparison : comparisons) {
    for (const CellVerdicts& judged : comparison.cells) {
      for (const Verdict& verdict : judged.verdicts)
        table.rows.push_back(number_row(comparison, judged, verdict));
    }
  }
  return table;
}

Table run_numbers(const ReportData& data) {
  std::vector<const Metric*> columns;
  for (const Metric& metric : metrics()) {
    const bool measured = std::ranges::any_of(
        data.finals, [&](const db::FinalMetrics& final) { return std::isfinite(final[metric.final_value]); });
    if (measured || !metric.rarely_measured) columns.push_back(&metric);
  }
  Table table;
  table.columns = {"run_key", "model", "strategy", "seed", "epochs"};
  for (const Metric* metric : columns) table.columns.push_back(metric->name);
  std::vector<std::string> axes = varying_axes(data);
  std::erase(axes, "epochs");  // has its own column
  table.columns.insert(table.columns.end(), axes.begin(), axes.end());
  std::map<std::string, const db::RunSummary*> runs;
  for (const db::RunSummary& run : data.runs) runs[run.run_key] = &run;
  for (const db::FinalMetrics& final : data.finals) {
    TableRow row{final.run_key, final.model, final.strategy, final.seed, final.epochs};
    for (const Metric* metric : columns) row.emplace_back(final[metric->final_value]);
    const auto run = runs.find(final.run_key);
    for (const std::string& axis : axes)
      row.emplace_back(run == runs.end() ? std::string() : value_of(*run->second, axis));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace trainyard::reports
