#include "reports/content/content.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "reports/content/data_figures.h"
#include "reports/content/effects.h"
#include "reports/content/panels.h"
#include "reports/content/time_breakdown.h"
#include "reports/results/provenance.h"
#include "reports/results/sanity_checks.h"

namespace trainyard::reports {

namespace {

std::vector<Cell> cells_of(const Comparison& comparison) {
  std::vector<Cell> cells;
  cells.reserve(comparison.cells.size());
  for (const CellVerdicts& judged : comparison.cells) cells.push_back(judged.cell);
  return cells;
}

void add_new_keys(const Arm& arm, const std::set<std::string>& seen, std::set<std::string>& keys) {
  for (const Observation& observation : arm.runs)
    if (!seen.contains(observation.run->run_key)) keys.insert(observation.run->run_key);
}

// One axis may be compared with several baselines.
void add_effects(Content& content) {
  std::set<std::string> axes;
  for (Comparison& comparison : content.comparisons) {
    const std::string axis = slug_of(comparison.compare.axis);
    const bool again = !axes.insert(axis).second;
    comparison.effects = make_effects(
        comparison, content.palette,
        fmt::format("effects-{}{}", axis, again ? "-against-" + slug_of(comparison.compare.baseline) : ""));
  }
}

// Cells per comparison, without cells whose runs are all in an earlier comparison. A joint report may have
// new cells in later comparisons. Slugs are made unique.
std::vector<std::vector<Cell>> new_cells(const std::vector<Comparison>& comparisons) {
  std::vector<std::vector<Cell>> cells;
  std::set<std::string> seen;
  std::set<std::string> slugs;
  for (const Comparison& comparison : comparisons) {
    std::set<std::string> keys;
    std::vector<Cell>& added = cells.emplace_back();
    for (Cell& cell : cells_of(comparison)) {
      const std::size_t before = keys.size();
      for (const std::vector<Arm>* arms : {&cell.arms, &cell.limits})
        for (const Arm& arm : *arms) add_new_keys(arm, seen, keys);
      add_new_keys(cell.baseline, seen, keys);
      if (keys.size() == before) continue;
      const std::string slug = cell.slug;
      for (int i = 2; !slugs.insert(cell.slug).second; ++i) cell.slug = fmt::format("{}-{}", slug, i);
      added.push_back(std::move(cell));
    }
    seen.merge(keys);
  }
  return cells;
}

// Adds the statements of a comparison that are not in the list yet. After the first comparison, they get its
// name.
void add_statements(const Comparison& comparison, std::vector<Statement> more, bool first,
                    std::vector<Statement>& statements) {
  for (Statement& statement : more) {
    if (std::ranges::find(statements, statement.text, &Statement::text) != statements.end()) continue;
    if (!first)
      statement.text = fmt::format("Against {}: {}", baseline_text(comparison.compare), statement.text);
    statements.push_back(std::move(statement));
  }
}

std::vector<Statement> statements_of(const ReportData& data, const std::vector<Comparison>& comparisons,
                                     const std::vector<std::vector<Cell>>& cells) {
  std::vector<Statement> statements;
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    if (i == 0 || !cells[i].empty())
      add_statements(comparisons[i], fairness_statements(data, comparisons[i].compare, cells[i]), i == 0,
                     statements);
  for (const Comparison& comparison : comparisons)
    std::ranges::copy(contract_statements(comparison.cells), std::back_inserter(statements));
  for (const std::string& symptom : training_symptoms(data))
    statements.push_back({Severity::unfair, symptom});
  if (!data.selected.empty())
    statements.push_back(
        {Severity::unfair, "This report includes only a part of the runs (" + data.selected +
                               "). Its verdicts were not planned, so the stated error rates do "
                               "not apply."});
  for (const std::string& note : published_notes(data)) statements.push_back({Severity::note, note});
  return statements;
}

}  // namespace

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
  content.tables = paper_tables(content.comparisons);
  content.palette = make_palette(all_cells);
  add_effects(content);
  const std::vector<std::vector<Cell>> cells = new_cells(content.comparisons);
  std::vector<Cell> drawn;
  for (const std::vector<Cell>& some : cells) std::ranges::copy(some, std::back_inserter(drawn));
  for (const Cell& cell : drawn) content.figures.push_back({cell, make_panels(data, cell, content.palette)});
  content.breakdown = make_time_breakdown(data, drawn);
  content.data_figures = make_data_figures(data);
  content.provenance = provenance(data);
  content.fairness = statements_of(data, content.comparisons, cells);
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

}  // namespace trainyard::reports
