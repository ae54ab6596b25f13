#include "reports/analysis/analysis.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/named_row.h"
#include "reports/analysis/parts.h"
#include "reports/explain/causes.h"
#include "reports/format/words.h"
#include "reports/results/sanity_checks.h"
#include "reports/verdicts/fairness.h"

namespace trainyard::reports {

namespace {

std::string dataset_of(const CellRuns& cell) {
  const std::vector<const ArmRuns*> arms = cell.compared();
  const auto first = std::ranges::find_if(arms, [](const ArmRuns* arm) { return !arm->runs.empty(); });
  if (first == arms.end()) return "";
  const db::RunSummary& run = *(*first)->runs.front().run;
  const bool replaced = !run.data_source.empty() && run.data_source != run.dataset;
  return run.dataset + (replaced ? ", stand-in " + run.data_source : "");
}

// Metrics by epoch that every model has, but no run of this cell by its task.
std::vector<std::string> not_defined(const CellRuns& cell) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics()) {
    if (metric.epoch_column.empty() || !metric.is_of_every_model()) continue;
    const auto has = [&](const ArmRuns* arm) {
      return std::ranges::any_of(arm->runs,
                                 [&](const Observation& one) { return known_to_have(*one.run, metric); });
    };
    if (std::ranges::none_of(cell.compared(), has)) names.push_back(metric.name);
  }
  return names;
}

Arm arm_of(const ArmRuns& runs) {
  Arm arm;
  arm.value = runs.value;
  std::int64_t devices = 0;
  for (const Observation& observation : runs.runs) {
    const db::RunSummary& run = *observation.run;
    arm.runs.push_back({observation.pair, run.run_key});
    arm.replicas = std::max(arm.replicas, run.replicas);
    arm.stages = std::max(arm.stages, run.stages);
    if (run.tensor > 1) arm.tensor = std::max(arm.tensor.value_or(1), run.tensor);
    if (run.servers > 0) arm.servers = std::max(arm.servers.value_or(0), run.servers);
    if (observation.launched == nullptr) continue;
    devices = std::max(devices, static_cast<std::int64_t>(observation.launched->devices));
  }
  arm.devices = devices > 0 ? devices : arm.ranks();
  return arm;
}

Cell cell_of(const ReportData& data, const experiments::Compare& compare, const CellVerdicts& judged) {
  const CellRuns& runs = judged.cell;
  Cell cell;
  static_cast<CellName&>(cell) = runs;
  cell.dataset = dataset_of(runs);
  cell.not_defined = not_defined(runs);
  cell.baseline = arm_of(runs.baseline);
  for (std::size_t i = 0; i < runs.arms.size(); ++i) {
    Arm& arm = cell.arms.emplace_back(arm_of(runs.arms[i]));
    arm.comparability = judged.comparability[i];
    if (!data.of_file) arm.causes = causes_of(data, compare, runs.baseline, runs.arms[i]);
  }
  for (const ArmRuns& limit : runs.limits) cell.limits.push_back(arm_of(limit));
  cell.verdicts.assign(judged.verdicts.begin(), judged.verdicts.end());
  return cell;
}

// Whether no earlier cell has a run of this one. Adds its runs.
class SeenRuns {
 public:
  bool adds(const Cell& cell) {
    bool added = false;
    for (const std::string& key : run_keys(cell))
      added = (!earlier_.contains(key) && here_.insert(key).second) || added;
    return added;
  }
  void end_comparison() { earlier_.merge(here_); }

 private:
  std::set<std::string> earlier_;
  std::set<std::string> here_;
};

// Adds the experiment to the names of cells that several experiments have.
void name_experiments(std::vector<JudgedComparison>& comparisons) {
  std::map<std::string, std::set<std::string>> experiments_by_label;
  for (const JudgedComparison& comparison : comparisons)
    for (const CellVerdicts& judged : comparison.cells)
      experiments_by_label[judged.cell.label].insert(comparison.experiment);
  for (JudgedComparison& comparison : comparisons)
    for (CellVerdicts& judged : comparison.cells) {
      if (experiments_by_label.at(judged.cell.label).size() == 1) continue;
      judged.cell.label += ", " + comparison.experiment;
      judged.cell.slug += "-" + slug_of(comparison.experiment);
    }
}

using NewCells = std::vector<std::vector<CellRuns>>;  // by comparison

// The comparisons as plain data. Cells that an earlier comparison has are marked, and slugs are made unique.
std::vector<Comparison> plain(const ReportData& data, const std::vector<JudgedComparison>& judged,
                              NewCells& new_cells) {
  std::vector<Comparison> comparisons;
  std::set<std::string> slugs;
  SeenRuns seen;
  for (const JudgedComparison& one : judged) {
    Comparison& comparison = comparisons.emplace_back();
    comparison.compare = one.compare;
    comparison.experiment = one.experiment;
    comparison.slug_end = one.slug_end;
    new_cells.emplace_back();
    for (const CellVerdicts& cell_verdicts : one.cells) {
      Cell& cell = comparison.cells.emplace_back(cell_of(data, one.compare, cell_verdicts));
      add_samples(cell_verdicts, one.compare, cell);
      cell.repeated = !seen.adds(cell);
      if (cell.repeated) continue;
      cell.slug = unique_slug(cell.slug, slugs);
      new_cells.back().push_back(cell_verdicts.cell);
    }
    seen.end_comparison();
  }
  return comparisons;
}

// The statements of each comparison that has new cells. A text that does not hold for all of them gets the
// name of its comparison, but not if it is of the first one of a single experiment.
void add_fairness(const ReportData& data, const std::vector<JudgedComparison>& comparisons,
                  const NewCells& cells, std::vector<Statement>& statements) {
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
      const bool unnamed = shared || (data.parts.empty() && &some == &all.front().second);
      if (!unnamed) statement.text = start + ": " + statement.text;
      statements.push_back(std::move(statement));
    }
}

std::vector<Statement> statements_of(const ReportData& data, const std::vector<JudgedComparison>& comparisons,
                                     const NewCells& cells) {
  std::vector<Statement> statements;
  add_fairness(data, comparisons, cells, statements);
  for (const JudgedComparison& comparison : comparisons)
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

RunRow row_of(const db::RunSummary& run, const db::FinalMetrics* final) {
  RunRow row{.key = run.run_key,
             .model = run.model,
             .title = title_of(run),
             .strategy = run.strategy,
             .seed = run.seed,
             .status = run.status,
             .epochs = run.epochs,
             .epochs_done = run.epochs_done,
             .attempts = run.attempts,
             .total_seconds = run.total_seconds,
             .failure = run.status == "finished" ? "" : run.failure,
             .has_result = final != nullptr,
             .settings = run.axes,
             .values = {}};
  if (final == nullptr) return row;
  row.times_count = final->times_count;
  if (!final->times_problem.empty()) row.times_problem = final->times_problem;
  row.disturbed_epochs = final->disturbed_epochs;
  for (const db::NamedColumn& column : db::final_columns())
    if (const double value = (*final)[column.column]; std::isfinite(value)) row.values[column.name] = value;
  for (const Metric& metric : metrics())
    if (const double value = (*final)[final_column(metric)]; !metric.own_name.empty() && std::isfinite(value))
      row.values[metric.column] = value;
  return row;
}

std::vector<RunRow> rows_of(const ReportData& data) {
  std::map<std::string, const db::FinalMetrics*> finals;
  for (const db::FinalMetrics& final : data.finals) finals[final.run_key] = &final;
  std::vector<RunRow> rows;
  for (const db::RunSummary& run : data.runs) {
    const auto* final = value_or_null(finals, run.run_key);
    rows.push_back(row_of(run, final == nullptr ? nullptr : *final));
  }
  return rows;
}

// Strategies by the device that the ranks recorded.
std::vector<DeviceUse> devices_of(const ReportData& data) {
  std::vector<DeviceUse> uses;
  for (const db::RunSummary& run : data.runs) {
    const db::RunEvidence* evidence = value_or_null(data.evidence, run.run_key);
    if (evidence == nullptr) continue;
    for (const db::RunEvidence::Rank& rank : evidence->ranks) {
      const std::string device = rank.device.substr(0, rank.device.find(':'));
      if (device.empty()) continue;
      auto known = std::ranges::find(uses, device, &DeviceUse::device);
      if (known == uses.end()) known = uses.insert(known, {device, {}});
      add_new(known->strategies, run.strategy);
    }
  }
  return uses;
}

// The comparisons of each experiment, judged on its own runs.
std::vector<JudgedComparison> judged_comparisons(const ReportData& data) {
  std::vector<JudgedComparison> comparisons;
  std::set<std::string> slug_ends;
  for (const ReportData* one : experiments_of(data)) {
    std::vector<experiments::Compare> compares = one->plan.compare;
    if (compares.empty()) compares.emplace_back();
    for (const experiments::Compare& compare : compares) {
      const std::string experiment = data.parts.empty() ? "" : one->experiment;
      const std::string end =
          "-" + slug_of(fmt::format("{} {} {}", experiment, compare.axis, compare.baseline));
      const bool first = comparisons.empty() && experiment.empty();
      comparisons.push_back(JudgedComparison{compare, judge(*one, compare), experiment,
                                             first ? "" : unique_slug(end, slug_ends)});
    }
  }
  name_experiments(comparisons);
  return comparisons;
}

// The part that every report has.
Report common_report(const ReportData& data, const std::vector<JudgedComparison>& judged,
                     NewCells& new_cells) {
  Report report;
  report.name = data.experiment;
  for (const ReportData* one : experiments_of(data)) report.experiments.push_back(one->experiment);
  report.selected = data.selected;
  report.date = last_record_time(data);
  report.varying = varying_axes(data);
  report.runs = rows_of(data);
  report.expectations = check_expectations(data);
  report.published = data.plan.published;
  report.data_profiles = data.plan.data_profiles;
  report.own_metrics = data.own_metrics;
  report.devices = devices_of(data);
  report.has_records = !data.evidence.empty();
  report.provenance = provenance(data);
  report.comparisons = plain(data, judged, new_cells);
  report.published_numbers = published_numbers(data, judged);
  return report;
}

}  // namespace

Report make_report(const ReportData& data, const std::vector<JudgedComparison>& comparisons) {
  NewCells new_cells;
  return common_report(data, comparisons, new_cells);
}

Report make_report(const ReportData& data) {
  const std::vector<JudgedComparison> judged = judged_comparisons(data);
  NewCells new_cells;
  Report report = common_report(data, judged, new_cells);
  report.studies = parameter_studies(data, judged);
  report.fairness = statements_of(data, judged, new_cells);
  const SecondsByRun seconds = seconds_by_run(data);
  for (std::size_t i = 0; i < judged.size(); ++i)
    for (std::size_t j = 0; j < judged[i].cells.size(); ++j) {
      const CellRuns& runs = judged[i].cells[j].cell;
      Cell& cell = report.comparisons[i].cells[j];
      if (cell.repeated) continue;
      add_curves(data, runs, cell);
      add_scaling(data, runs, cell, report.fairness);
      add_rank_costs(data, runs, cell);
      add_part_changes(seconds, judged[i].compare, runs, cell);
    }
  return report;
}

}  // namespace trainyard::reports
