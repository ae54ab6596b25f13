#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/content/paper_tables.h"
#include "reports/document/metrics.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

struct CellRows {
  const Comparison* comparison = nullptr;
  const Cell* cell = nullptr;
  std::vector<const Arm*> arms;  // the baseline first, independent runs last; none without runs
};

CellRows rows_of(const Comparison& comparison, const Cell& cell) {
  CellRows rows{&comparison, &cell, cell.compared()};
  for (const Arm& limit : cell.limits) rows.arms.push_back(&limit);
  std::erase_if(rows.arms, [](const Arm* arm) { return arm->runs.empty(); });
  return rows;
}

const Sample* sample_of(const Arm& arm, const Metric& metric) {
  return row_or_null(arm.samples, &Sample::metric, metric.name);
}

std::string label_of(const Arm& arm) {
  return arm.value + with_label(", ", refusal_of(arm));
}

// Names as in the table for people: "Accuracy in %".
std::string row_name(const Metric& metric) {
  return upper_first(metric.quantity) + with_label(" in ", std::string(metric.kind->shown_unit));
}

// The name of a kind of metrics, and those of training, validation and test. Null: there is none.
using Kind = std::pair<std::string, std::array<const Metric*, 3>>;

std::vector<Kind> kinds() {
  std::vector<Kind> found;
  for (const Metric& metric : metrics()) {
    const auto phase = std::ranges::find(models::phases, metric.name.substr(0, metric.name.find('-')));
    value_of_key(found, row_name(metric))[static_cast<std::size_t>(phase - models::phases.begin())] = &metric;
  }
  return found;
}

TableValue cell_text(const Sample& sample, const Metric& metric) {
  if (sample.n == 0) return "–";
  const double scale = metric.kind->scale;
  const MeanText shown =
      with_half(scale * sample.mean, scale * (sample.interval.high - sample.interval.low) / 2);
  std::string text = shown.mean + (shown.half.empty() ? "" : " ± " + shown.half);
  return sample.best ? TableValue(Strong{std::move(text)}) : TableValue(std::move(text));
}

// "5", or "5, 5, 4" if the phases differ.
std::string counts_text(const std::vector<int>& counts) {
  if (std::ranges::adjacent_find(counts, std::ranges::not_equal_to{}) == counts.end())
    return std::to_string(counts.front());
  return joined(counts, [](int n) { return std::to_string(n); });
}

void add_kind(const CellRows& rows, const Kind& kind, Table& table) {
  std::string name = kind.first;
  for (const Arm* arm : rows.arms) {
    TableRow cells;
    std::vector<int> counts;
    for (const Metric* metric : kind.second) {
      const Sample* const sample = metric != nullptr ? sample_of(*arm, *metric) : nullptr;
      if (sample == nullptr) {
        cells.emplace_back("");
        continue;
      }
      cells.push_back(cell_text(*sample, *metric));
      counts.push_back(sample->n);
    }
    if (counts.empty()) return;  // the same for all arms
    cells.insert(cells.begin(), {std::exchange(name, ""), label_of(*arm), counts_text(counts)});
    table.rows.push_back(std::move(cells));
  }
}

// The axis of all comparisons, else "arm".
std::string axis_of(const std::vector<Comparison>& comparisons) {
  for (const Comparison& comparison : comparisons)
    if (comparison.compare.axis != comparisons.front().compare.axis) return "arm";
  return comparisons.empty() ? "arm" : comparisons.front().compare.axis;
}

std::string caption_of(const std::vector<CellRows>& cells) {
  std::string text =
      "Results: mean over n runs ± half of the 95 % confidence interval of the mean. Times are per epoch in "
      "training and in total in validation. Bold: the best mean of the arms of a model. It does not mean "
      "significant, see the verdicts.";
  const auto paired = std::ranges::find_if(
      cells, [](const CellRows& rows) { return !rows.comparison->compare.pair.empty(); });
  if (paired == cells.end()) return text;
  const bool by_seed = paired->comparison->compare.pair == std::vector<std::string>{"seed"};
  return text + fmt::format(
                    " Only arms with the same {} are candidates. Verdicts use the difference of each pair of "
                    "runs, so intervals that overlap do not contradict them.",
                    by_seed ? "seeds" : "pairs of runs");
}

Table table_for_people(const std::vector<Comparison>& comparisons, const std::vector<CellRows>& cells) {
  Table table;
  table.columns = {left_column("Metric", 0.155),     left_column(axis_of(comparisons), 0.185),
                   right_column("n", 0.06),          right_column("Training", 0.18),
                   right_column("Validation", 0.18), right_column("Test", 0.18)};
  table.caption = caption_of(cells);
  for (const CellRows& rows : cells) {
    table.rows.push_back({rows.cell->label});
    for (const Kind& kind : kinds()) add_kind(rows, kind, table);
    if (table.rows.back().size() == 1) table.rows.pop_back();  // nothing is finished
  }
  return table;
}

// Names of the values that separate cells, besides the model.
std::vector<std::string> further_names(const std::vector<CellRows>& cells) {
  std::vector<std::string> names;
  for (const CellRows& rows : cells)
    for (const auto& [name, value] : rows.cell->further)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

std::string further_value(const Cell& cell, const std::string& name) {
  for (const auto& [other, value] : cell.further)
    if (other == name) return value;
  return "";
}

Table numbers_of(const std::vector<CellRows>& cells) {
  Table table;
  table.exact = true;
  table.columns = {"axis", "cell", "model", "arm",    "metric",  "column", "unit",
                   "n",    "mean", "sd",    "low_95", "high_95", "best"};
  const std::vector<std::string> names = further_names(cells);
  table.columns.insert(table.columns.end(), names.begin(), names.end());
  for (const CellRows& rows : cells)
    for (const Arm* arm : rows.arms)
      for (const Sample& sample : arm->samples) {
        const Metric& metric = find_metric(sample.metric);
        TableRow values{rows.comparison->compare.axis,
                        rows.cell->label,
                        rows.cell->model,
                        arm->value,
                        metric.name,
                        metric.column,
                        std::string(metric.kind->unit),
                        std::int64_t{sample.n},
                        sample.mean,
                        sample.sd,
                        sample.interval.low,
                        sample.interval.high,
                        std::int64_t{sample.best}};
        for (const std::string& name : names) values.emplace_back(further_value(*rows.cell, name));
        table.rows.push_back(std::move(values));
      }
  return table;
}

}  // namespace

Results make_results(const std::vector<Comparison>& comparisons) {
  std::vector<CellRows> cells;
  for (const Comparison& comparison : comparisons)
    for (const Cell& cell : comparison.cells)
      if (!cell.repeated) cells.push_back(rows_of(comparison, cell));
  Table numbers =
      numbers_of(cells);  // before the braces: GCC 12 destroys their first member twice if this throws
  return {{"results", true, table_for_people(comparisons, cells)}, std::move(numbers)};
}

}  // namespace trainyard::reports
