#include "reports/content/results_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/format/number_text.h"
#include "reports/results/metrics.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

// The numbers of one arm in one metric.
struct Sample {
  std::vector<std::string> pairs;  // of the runs with a value
  int n = 0;
  double mean = std::nan("");
  double sd = std::nan("");
  Interval interval{std::nan(""), std::nan("")};
  bool best = false;
};

struct ArmRow {
  const Arm* arm = nullptr;
  const Comparability* comparability = nullptr;  // null: the baseline, and independent runs
  bool is_baseline = false;
  std::vector<Sample> samples;  // in the order of `metrics()`

  // Whether its values may be compared with those of the baseline.
  bool may_be_compared(const Metric& metric) const {
    if (is_baseline) return true;
    return comparability != nullptr && comparability->broken.empty() && comparability->refused.empty() &&
           (!is_cost(metric.kind) || comparability->times_refused.empty());
  }
  std::string label() const {
    if (comparability == nullptr) return arm->value;
    if (!comparability->broken.empty()) return arm->value + ", " + text_of(VerdictKind::broken);
    if (!comparability->refused.empty()) return arm->value + ", " + text_of(VerdictKind::not_comparable);
    return arm->value;
  }
};

struct CellRows {
  const Comparison* comparison = nullptr;
  const Cell* cell = nullptr;
  std::vector<ArmRow> arms;  // the baseline first, independent runs last
  std::vector<bool> shown;   // by metric
};

// The runs of an arm with a value, in the order of `trainyard export final`: by run key.
Sample sample_of(const Arm& arm, const Metric& metric) {
  std::vector<const Observation*> runs;
  for (const Observation& observation : arm.runs) {
    const bool counts =
        observation.final != nullptr && (!is_cost(metric.kind) || observation.final->times_count);
    if (counts && std::isfinite((*observation.final)[metric.final_value])) runs.push_back(&observation);
  }
  std::ranges::sort(runs, {}, [](const Observation* one) { return one->run->run_key; });
  Sample sample;
  std::vector<double> values;
  for (const Observation* one : runs) {
    sample.pairs.push_back(one->pair);
    values.push_back((*one->final)[metric.final_value]);
  }
  std::ranges::sort(sample.pairs);
  sample.n = static_cast<int>(values.size());
  if (sample.n > 0) sample.mean = mean_of(values);
  if (sample.n < 2) return sample;
  const Estimate estimate = paired_estimate(values);
  sample.sd = estimate.spread;
  sample.interval = confidence_interval(estimate, 0.95);
  return sample;
}

int exponent_of(double value) {
  return static_cast<int>(std::floor(std::log10(std::abs(value))));
}

constexpr int most_decimals = 6;  // smaller numbers have an exponent

// Mean, and half of the interval with two significant digits, in the unit for people.
struct Shown {
  std::string mean;
  std::string half;  // empty if there is no interval
};

Shown shown_sample(const Sample& sample, const Metric& metric) {
  const double scale = shown_scale(metric.kind);
  const double mean = scale * sample.mean;
  const double half = scale * (sample.interval.high - sample.interval.low) / 2;
  if (std::isnan(half)) return {for_table(mean), ""};
  if (half == 0) return {for_table(mean), "0"};
  const int decimals = std::max(0, 1 - exponent_of(rounded(half, 2)));
  if (decimals > most_decimals) return {for_table(mean), for_table(half, 2)};
  return {fixed(mean, decimals), fixed(half, decimals)};
}

// Marks the best mean of the arms that have values for the same pairs as the baseline. Means that look equal
// are all best. If all arms would be best, none is.
void mark_best(CellRows& rows, std::size_t at) {
  const Metric& metric = metrics()[at];
  const Sample& baseline = rows.arms.front().samples[at];
  const bool paired = !rows.comparison->compare.pair.empty();
  std::vector<Sample*> candidates;
  for (ArmRow& row : rows.arms) {
    Sample& sample = row.samples[at];
    const bool same_runs = paired ? sample.pairs == baseline.pairs : sample.n == baseline.n;
    if (sample.n > 0 && same_runs && row.may_be_compared(metric)) candidates.push_back(&sample);
  }
  if (candidates.empty()) return;
  const auto by_mean = [](const Sample* a, const Sample* b) { return a->mean < b->mean; };
  const auto [low, high] = std::ranges::minmax_element(candidates, by_mean);
  const Sample& best = higher_is_better(metric.kind) ? **high : **low;
  const std::string text = shown_sample(best, metric).mean;
  for (Sample* sample : candidates)
    sample->best = sample->mean == best.mean || shown_sample(*sample, metric).mean == text;
  if (std::ranges::all_of(candidates, &Sample::best))
    for (Sample* sample : candidates) sample->best = false;
}

// Whether some run of the cell has a value, or should have one.
bool is_shown(const CellRows& rows, std::size_t at) {
  const Metric& metric = metrics()[at];
  return std::ranges::any_of(rows.arms, [&](const ArmRow& row) {
    return row.samples[at].n > 0 || std::ranges::any_of(row.arm->runs, [&](const Observation& observation) {
             return observation.final != nullptr && known_to_have(*observation.run, metric);
           });
  });
}

CellRows rows_of(const Comparison& comparison, const CellVerdicts& judged) {
  CellRows rows{&comparison, &judged.cell, {}, {}};
  rows.arms.push_back({&judged.cell.baseline, nullptr, true, {}});
  for (std::size_t i = 0; i < judged.cell.arms.size(); ++i)
    rows.arms.push_back({&judged.cell.arms[i], &judged.comparability[i], false, {}});
  for (const Arm& arm : judged.cell.limits) rows.arms.push_back({&arm, nullptr, false, {}});
  for (ArmRow& row : rows.arms)
    for (const Metric& metric : metrics()) row.samples.push_back(sample_of(*row.arm, metric));
  for (std::size_t at = 0; at < metrics().size(); ++at) {
    rows.shown.push_back(is_shown(rows, at));
    mark_best(rows, at);
  }
  std::erase_if(rows.arms, [](const ArmRow& row) { return row.arm->runs.empty(); });
  return rows;
}

// Whether the cell has a run that is not in `seen`. Adds its runs.
bool adds_runs(const Cell& cell, std::set<std::string>& seen) {
  const std::size_t before = seen.size();
  const auto add = [&](const Arm& arm) {
    for (const Observation& observation : arm.runs) seen.insert(observation.run->run_key);
  };
  add(cell.baseline);
  for (const std::vector<Arm>* arms : {&cell.arms, &cell.limits})
    for (const Arm& arm : *arms) add(arm);
  return seen.size() > before;
}

// Names as in the table for people: "Accuracy in %".
std::string row_name(const Metric& metric) {
  switch (metric.kind) {
    case MetricKind::accuracy:
      return "Accuracy in %";
    case MetricKind::loss:
      return "Loss";
    case MetricKind::time:
      return "Time in s";
    case MetricKind::perplexity:
      return "Perplexity";
    case MetricKind::psnr:
      return "PSNR in dB";
    case MetricKind::bleu:
      return "BLEU";
    case MetricKind::energy:
      return "Energy in J";
  }
  return "";
}

// The metrics of one kind: training, validation, test. A position in `metrics()`, or nothing.
struct Kind {
  std::string name;
  std::array<std::optional<std::size_t>, 3> phases;
};

std::vector<Kind> kinds() {
  std::vector<Kind> found;
  for (std::size_t at = 0; at < metrics().size(); ++at) {
    const Metric& metric = metrics()[at];
    const std::string name = row_name(metric);
    if (std::ranges::find(found, name, &Kind::name) == found.end()) found.push_back({name, {}});
    const auto phase = std::ranges::find(models::phases, metric.name.substr(0, metric.name.find('-')));
    std::ranges::find(found, name, &Kind::name)
        ->phases[static_cast<std::size_t>(phase - models::phases.begin())] = at;
  }
  return found;
}

TableValue cell_text(const Sample& sample, const Metric& metric) {
  if (sample.n == 0) return "–";
  const Shown shown = shown_sample(sample, metric);
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
  std::string name = kind.name;
  for (const ArmRow& row : rows.arms) {
    TableRow cells;
    std::vector<int> counts;
    for (const std::optional<std::size_t>& at : kind.phases) {
      if (!at || !rows.shown[*at]) {
        cells.emplace_back("");
        continue;
      }
      cells.push_back(cell_text(row.samples[*at], metrics()[*at]));
      counts.push_back(row.samples[*at].n);
    }
    if (counts.empty()) return;  // the same for all arms
    cells.insert(cells.begin(), {std::exchange(name, ""), row.label(), counts_text(counts)});
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
    for (const ArmRow& row : rows.arms)
      for (std::size_t at = 0; at < metrics().size(); ++at) {
        if (!rows.shown[at]) continue;
        const Metric& metric = metrics()[at];
        const Sample& sample = row.samples[at];
        TableRow values{rows.comparison->compare.axis,
                        rows.cell->label,
                        rows.cell->model,
                        row.arm->value,
                        metric.name,
                        export_column(metric),
                        unit_in_database(metric.kind),
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
  std::set<std::string> seen;
  for (const Comparison& comparison : comparisons)
    for (const CellVerdicts& judged : comparison.cells)
      if (adds_runs(judged.cell, seen)) cells.push_back(rows_of(comparison, judged));
  Table numbers =
      numbers_of(cells);  // before the braces: GCC 12 destroys their first member twice if this throws
  return {{"results", true, table_for_people(comparisons, cells)}, std::move(numbers)};
}

}  // namespace trainyard::reports
