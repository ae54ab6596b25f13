#include "reports/content/content.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "reports/content/effects.h"
#include "reports/content/figures_of_all_models.h"
#include "reports/content/panels.h"
#include "reports/content/scaling.h"
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

// The comparisons of each experiment, judged on its own runs.
std::vector<Comparison> comparisons_of(const ReportData& data) {
  std::vector<Comparison> comparisons;
  std::set<std::string> slug_ends;
  for (const ReportData* one : experiments_of(data)) {
    std::vector<experiments::Compare> compares = one->plan.compare;
    if (compares.empty()) compares.emplace_back();
    for (const experiments::Compare& compare : compares) {
      const std::string experiment = data.parts.empty() ? "" : one->experiment;
      const std::string end =
          "-" + slug_of(fmt::format("{} {} {}", experiment, compare.axis, compare.baseline));
      const bool first = comparisons.empty() && experiment.empty();
      Comparison comparison{compare, judge(*one, compare), {}, experiment, first ? "" : end};
      for (int i = 2; !slug_ends.insert(comparison.slug_end).second; ++i)
        comparison.slug_end = fmt::format("{}-{}", end, i);
      comparisons.push_back(std::move(comparison));
    }
  }
  return comparisons;
}

// Adds the experiment to the names of cells that several experiments have.
void name_experiments(std::vector<Comparison>& comparisons) {
  std::map<std::string, std::set<std::string>> experiments_by_label;
  for (const Comparison& comparison : comparisons)
    for (const CellVerdicts& judged : comparison.cells)
      experiments_by_label[judged.cell.label].insert(comparison.experiment);
  for (Comparison& comparison : comparisons)
    for (CellVerdicts& judged : comparison.cells) {
      if (experiments_by_label.at(judged.cell.label).size() == 1) continue;
      judged.cell.label += ", " + comparison.experiment;
      judged.cell.slug += "-" + slug_of(comparison.experiment);
    }
}

void add_effects(Content& content) {
  std::set<std::string> slugs;
  for (Comparison& comparison : content.comparisons) {
    std::string slug = "effects-" + slug_of(comparison.experiment + " " + comparison.compare.axis);
    if (!slugs.insert(slug).second) slug += "-against-" + slug_of(comparison.compare.baseline);
    comparison.effects = make_effects(comparison, content.palette, slug);
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

// The statements of each comparison that has new cells. A text that does not hold for all of them gets the
// name of its comparison, but not if it is of the first one of a single experiment.
void add_fairness(const ReportData& data, const std::vector<Comparison>& comparisons,
                  const std::vector<std::vector<Cell>>& cells, std::vector<Statement>& statements) {
  std::vector<std::pair<std::string, std::vector<Statement>>> all;  // by start of the texts
  std::map<std::string, std::size_t> uses;
  const std::vector<const ReportData*> parts = experiments_of(data);
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    if (i > 0 && cells[i].empty()) continue;
    const std::string& experiment = comparisons[i].experiment;
    const auto part = std::ranges::find(parts, experiment, &ReportData::experiment);
    const ReportData& own = part == parts.end() ? data : **part;
    const std::string start =
        experiment.empty() ? fmt::format("Against {}", baseline_text(comparisons[i].compare)) : experiment;
    all.emplace_back(start, fairness_statements(own, comparisons[i].compare, cells[i]));
    for (const Statement& statement : all.back().second) ++uses[statement.text];
  }
  for (const auto& [start, some] : all)
    for (Statement statement : some) {
      if (std::ranges::find(statements, statement.text, &Statement::text) != statements.end()) continue;
      const bool shared = uses[statement.text] == all.size();
      const bool plain = shared || (data.parts.empty() && &some == &all.front().second);
      if (!plain) statement.text = start + ": " + statement.text;
      statements.push_back(std::move(statement));
    }
}

std::vector<Statement> statements_of(const ReportData& data, const std::vector<Comparison>& comparisons,
                                     const std::vector<std::vector<Cell>>& cells) {
  std::vector<Statement> statements;
  add_fairness(data, comparisons, cells, statements);
  for (const Comparison& comparison : comparisons)
    std::ranges::copy(contract_statements(comparison.cells), std::back_inserter(statements));
  for (const std::string& symptom : training_symptoms(data))
    statements.push_back({Severity::unfair, symptom});
  if (!data.selected.empty())
    statements.push_back(
        {Severity::unfair, "This report includes only a part of the runs (" + data.selected +
                               "). Its verdicts were not planned, so the stated error rates do "
                               "not apply."});
  return statements;
}

// The verdicts of a cell, whatever its slug.
const CellVerdicts* verdicts_of(const Comparison& comparison, const Cell& cell) {
  const auto found = std::ranges::find_if(comparison.cells, [&](const CellVerdicts& judged) {
    return judged.cell.model == cell.model && judged.cell.further == cell.further;
  });
  return found == comparison.cells.end() ? nullptr : &*found;
}

}  // namespace

Content compose(const ReportData& data) {
  Content content;
  content.data = &data;
  content.comparisons = comparisons_of(data);
  name_experiments(content.comparisons);
  std::vector<Cell> all_cells;
  for (const Comparison& comparison : content.comparisons)
    std::ranges::copy(cells_of(comparison), std::back_inserter(all_cells));
  content.tables = paper_tables(content.comparisons);
  content.results = make_results(content.comparisons);
  content.palette = make_palette(all_cells);
  add_effects(content);
  const std::vector<std::vector<Cell>> cells = new_cells(content.comparisons);
  std::vector<Cell> drawn;
  for (const std::vector<Cell>& some : cells) std::ranges::copy(some, std::back_inserter(drawn));
  for (std::size_t i = 0; i < cells.size(); ++i)
    for (const Cell& cell : cells[i]) {
      std::vector<Figure> panels =
          make_panels(data, cell, content.palette, verdicts_of(content.comparisons[i], cell));
      std::string lacking = lacking_text(cell, panels);
      content.figures.push_back({cell, std::move(panels), std::move(lacking)});
    }
  content.scaling = make_scaling_of_all(data, drawn, content.palette);
  content.studies = make_parameter_studies(data, content.comparisons, content.palette);
  content.breakdown = make_time_breakdown(data, drawn);
  content.data_figures = make_data_figures(data);
  content.provenance = provenance(data);
  content.answer = make_answer(data, content.comparisons, content.provenance);
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
  for (const Study& study : content.studies) add(study.figures);
  add(content.scaling);
  for (const CellFigures& cell : content.figures) add(cell.panels);
  figures.push_back(&content.breakdown);
  add(content.data_figures);
  return figures;
}

}  // namespace trainyard::reports
