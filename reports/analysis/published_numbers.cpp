#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/analysis/parts.h"
#include "reports/format/words.h"
#include "reports/results/metrics.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

using experiments::PublishedSource;
using experiments::PublishedTable;

// The metric of a name in the file: a column, or "train_seconds".
const Metric& metric_of(std::string name) {
  const auto found = std::ranges::find(metrics(), name, &Metric::column);
  if (found != metrics().end()) return *found;
  std::ranges::replace(name, '_', '-');
  return find_metric(name);
}

bool is_at(const db::RunSummary& run, const PublishedTable& table) {
  return std::ranges::all_of(
      table.at, [&](const auto& setting) { return value_of(run, setting.first) == setting.second; });
}

class NumberMaker {
 public:
  NumberMaker(const ReportData& data, const std::vector<JudgedComparison>& comparisons)
      : data_(data), comparisons_(comparisons) {}

  std::vector<PublishedNumber> numbers() {
    for (const PublishedSource& source : data_.plan.published->sources)
      for (const PublishedTable& table : source.tables) {
        if (table.axis.empty())
          add_absolute(source, table);
        else
          add_percentages(source, table);
      }
    return std::move(numbers_);
  }

 private:
  // The value of a run after `epoch`, or of the whole run for epoch 0. NaN: it has none, or its time does not count.
  double value(const Observation& one, const std::string& name, std::int64_t epoch) const {
    if (one.final == nullptr) return std::nan("");
    const Metric& metric = metric_of(name);
    if (!value_counts(one, metric)) return std::nan("");
    if (epoch == 0 || (!metric.kind->is_cost() && epoch == one.run->epochs))
      return metric.kind->scale * (*one.final)[final_column(metric)];
    for (const db::EpochRow& row : data_.averages)
      if (row.run_key == one.run->run_key && row.epoch == epoch)
        return row.times_count || !metric.kind->depends_on_others
                   ? metric.kind->scale * row[epoch_column(metric)]
                   : std::nan("");
    return std::nan("");
  }

  static PublishedNumber start(const PublishedSource& source, const PublishedTable& table, std::string what,
                               const std::string& name) {
    PublishedNumber number;
    number.source = source.name;
    number.what = table.title + ": " + std::move(what);
    number.metric = metric_of(name).title;
    if (!table.note.empty()) number.remarks.push_back(table.note);
    return number;
  }

  // "other data than the study: mnist (500 training samples), not fashion-mnist".
  static void add_data(const PublishedSource& source, const std::vector<const Observation*>& runs,
                       PublishedNumber& number) {
    if (source.dataset.empty()) return;
    std::set<std::string> others;
    for (const Observation* one : runs) {
      const std::string samples = value_of(*one->run, "train_samples");
      const std::string& read = one->run->data_source.empty() ? one->run->dataset : one->run->data_source;
      if (read != source.dataset || !samples.empty())
        others.insert(read + (samples.empty() ? "" : fmt::format(" ({} training samples)", samples)));
    }
    if (!others.empty())
      number.remarks.push_back(
          fmt::format("other data than the study: {}, not {}", joined(others), source.dataset));
  }

  static void add_left_out(std::size_t all, int used, const char* thing, PublishedNumber& number) {
    const std::size_t left_out = all - static_cast<std::size_t>(used);
    if (left_out > 0)
      number.remarks.push_back(
          fmt::format("{} of {} {} left out: not finished, or the times do not count", left_out, all, thing));
  }

  // Numbers of runs.
  void add_absolute(const PublishedSource& source, const PublishedTable& table) {
    std::vector<const Observation*> runs;
    std::set<std::string> keys;
    for (const JudgedComparison& comparison : comparisons_)
      for (const CellVerdicts& judged : comparison.cells)
        for (const ArmRuns* arm : judged.cell.compared())
          for (const Observation& one : arm->runs)
            if (is_at(*one.run, table) && keys.insert(one.run->run_key).second) runs.push_back(&one);
    if (runs.empty()) return;
    for (const auto& [name, numbers] : table.numbers) {
      const bool by_epoch = numbers.size() > 1 && !table.repeats && !metric_of(name).epoch_column.empty();
      for (std::size_t i = 0; i < (by_epoch ? numbers.size() : 1); ++i) {
        const std::int64_t epoch = by_epoch ? static_cast<std::int64_t>(i) + 1 : 0;
        const Metric& metric = metric_of(name);
        const bool is_last = epoch == runs.front()->run->epochs;
        if (epoch > 0 && data_.averages.empty() && (metric.kind->is_cost() || !is_last)) continue;
        PublishedNumber number =
            start(source, table, by_epoch ? fmt::format("epoch {}", epoch) : "whole run", name);
        number.unit = metric.kind->is_cost() ? "s" : metric.kind->is_fraction() ? "%" : "";
        std::vector<double> published = by_epoch ? std::vector<double>{numbers[i]} : numbers;
        for (double& one : published) one *= metric.kind->scale;
        number.repeats = static_cast<int>(published.size());
        number.published = mean_of(published);
        if (published.size() > 1) number.published_sd = paired_estimate(published).spread;
        std::vector<double> values;
        for (const Observation* one : runs)
          if (const double here = value(*one, name, epoch); std::isfinite(here)) values.push_back(here);
        number.here = mean_point(static_cast<double>(epoch), values);
        if (values.size() > 1) number.sd = paired_estimate(values).spread;
        add_data(source, runs, number);
        add_left_out(runs.size(), number.here.n, "runs", number);
        numbers_.push_back(std::move(number));
      }
    }
  }

  // Percentages of the benchmark.
  void add_percentages(const PublishedSource& source, const PublishedTable& table) {
    for (const JudgedComparison& comparison : comparisons_) {
      if (comparison.compare.axis != table.axis || comparison.compare.baseline != table.values.front())
        continue;
      for (const CellVerdicts& judged : comparison.cells)
        if (!judged.cell.baseline.runs.empty() && is_at(*judged.cell.baseline.runs.front().run, table))
          for (const auto& [name, numbers] : table.numbers)
            for (std::size_t i = 1; i < numbers.size(); ++i)
              for (std::size_t arm = 0; arm < judged.cell.arms.size(); ++arm)
                if (judged.cell.arms[arm].value == table.values[i])
                  add_percentage(source, table, {comparison, judged, arm}, name, numbers[i]);
    }
  }

  struct Place {
    const JudgedComparison& comparison;
    const CellVerdicts& judged;
    std::size_t arm;
  };

  void add_percentage(const PublishedSource& source, const PublishedTable& table, const Place& place,
                      const std::string& name, double published) {
    const CellRuns& cell = place.judged.cell;
    const ArmRuns& arm = cell.arms[place.arm];
    PublishedNumber number =
        start(source, table, fmt::format("{}, {} {}", cell.label, with_spaces(table.axis), arm.value), name);
    number.unit = "% of the benchmark";
    number.published = published;
    std::vector<const Observation*> runs;
    std::vector<double> ratios;
    for (std::size_t i = 0; i < arm.runs.size(); ++i) {
      const Observation* other = compared_with(cell.baseline, arm, i, !place.comparison.compare.pair.empty());
      runs.push_back(&arm.runs[i]);
      if (other == nullptr) continue;
      const double ratio = std::log(value(arm.runs[i], name, 0) / value(*other, name, 0));
      if (std::isfinite(ratio)) ratios.push_back(ratio);
    }
    const Comparability& comparability = place.judged.comparability[place.arm];
    std::string refused = refusal(comparability, metric_of(name));
    if (!comparability.broken.empty()) refused += (refused.empty() ? "" : "; ") + comparability.broken;
    if (refused.empty()) {
      const Point point = mean_point(0, ratios);
      number.here = {0, 100 * std::exp(point.mean), 100 * std::exp(point.low), 100 * std::exp(point.high),
                     point.n};
      add_left_out(arm.runs.size(), point.n, "pairs", number);
    } else {
      number.here = {0, NAN, NAN, NAN, 0};
      number.remarks.push_back("not comparable: " + refused);
    }
    add_data(source, runs, number);
    add_word(place, name, number);
    numbers_.push_back(std::move(number));
  }

  // The verdict on this change. The total time is judged only if the arms train different numbers of epochs: else
  // the time per epoch says the same.
  static void add_word(const Place& place, const std::string& name, PublishedNumber& number) {
    const CellRuns& cell = place.judged.cell;
    const ArmRuns& arm = cell.arms[place.arm];
    const Verdict* verdict = place.judged.find(arm.value, metric_of(name).name);
    if (verdict == nullptr && name == "total_train_seconds" && !arm.runs.empty() &&
        arm.runs.front().run->epochs == cell.baseline.runs.front().run->epochs)
      verdict = place.judged.find(arm.value, "train-seconds");
    if (verdict == nullptr) return;
    number.caveats = verdict->caveats;
    number.verdict = text_of(verdict->kind);
    if (!verdict->reason.text.empty()) number.remarks.push_back(verdict->reason.text);
  }

  const ReportData& data_;
  const std::vector<JudgedComparison>& comparisons_;
  std::vector<PublishedNumber> numbers_;
};

}  // namespace

std::vector<PublishedNumber> published_numbers(const ReportData& data,
                                               const std::vector<JudgedComparison>& comparisons) {
  if (!data.plan.published) return {};
  return NumberMaker(data, comparisons).numbers();
}

}  // namespace trainyard::reports
