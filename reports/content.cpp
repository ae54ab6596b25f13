#include "reports/content.h"

#include <algorithm>

#include "reports/data_figures.h"
#include "reports/effects.h"
#include "reports/health.h"
#include "reports/panels.h"
#include "reports/time_breakdown.h"

namespace trainyard::reports {

namespace {

std::vector<Cell> cells_of(const Comparison& comparison) {
  std::vector<Cell> cells;
  cells.reserve(comparison.cells.size());
  for (const CellVerdicts& judged : comparison.cells) cells.push_back(judged.cell);
  return cells;
}

std::string row_of(Word word) {
  switch (word) {
    case Word::improves:
      return "improves";
    case Word::no_change:
      return "no change";
    case Word::deteriorates:
      return "deteriorates";
    case Word::inconclusive:
      return "inconclusive";
    case Word::interim:
    case Word::not_comparable:
    case Word::broken:
      return "no verdict";
  }
  return "";
}

// Training improves where validation deteriorates, or the reverse.
bool contradicts(const CellVerdicts& cell, const Verdict& published) {
  const std::string training = "train-" + published.metric.substr(published.metric.find('-') + 1);
  const Verdict* other = cell.find(published.arm, training);
  if (other == nullptr || other->metric == published.metric) return false;
  return (other->word == Word::improves && published.word == Word::deteriorates) ||
         (other->word == Word::deteriorates && published.word == Word::improves);
}

PublishedTable::Row& find_row(PublishedTable& table, const std::string& name) {
  return std::ranges::find(table.rows, name, &std::pair<std::string, PublishedTable::Row>::first)->second;
}

}  // namespace

bool has_verdicts(const Comparison& comparison) {
  return std::ranges::any_of(comparison.cells,
                             [](const CellVerdicts& judged) { return !judged.verdicts.empty(); });
}

Content compose(const ReportData& data) {
  Content content;
  content.data = &data;
  std::vector<experiments::Compare> compares = data.plan.compare;
  if (compares.empty()) compares.emplace_back();
  std::vector<Cell> all_cells;
  for (const experiments::Compare& compare : compares) {
    content.comparisons.push_back({compare, judge(data, compare), {}});
    std::ranges::copy(cells_of(content.comparisons.back()), std::back_inserter(all_cells));
  }
  content.palette = make_palette(all_cells);
  for (Comparison& comparison : content.comparisons)
    comparison.effects = make_effects(comparison, content.palette);
  const std::vector<Cell> cells = cells_of(content.comparisons.front());
  for (const Cell& cell : cells) content.figures.push_back({cell, make_panels(data, cell, content.palette)});
  content.breakdown = make_time_breakdown(data, cells);
  content.data_figures = make_data_figures(data);
  content.provenance = provenance(data);
  content.fairness = fairness_statements(data, compares.front(), cells);
  for (const Comparison& comparison : content.comparisons)
    std::ranges::copy(contract_statements(comparison.cells), std::back_inserter(content.fairness));
  for (const std::string& symptom : training_symptoms(data))
    content.fairness.push_back({Bearing::unfair, symptom});
  content.expectations = check_expectations(data);
  return content;
}

std::vector<const Figure*> all_figures(const Content& content) {
  std::vector<const Figure*> figures;
  const auto add = [&](const std::vector<Figure>& some) {
    for (const Figure& figure : some) figures.push_back(&figure);
  };
  for (const Comparison& comparison : content.comparisons) add(comparison.effects);
  for (const CellFigures& cell : content.figures) add(cell.panels);
  figures.push_back(&content.breakdown);
  add(content.data_figures);
  return figures;
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
      table.marked = table.marked || mark;
      find_row(table, row_of(verdict.word))[metric.kind].push_back(std::move(name));
    }
  }
  return table;
}

}  // namespace trainyard::reports
