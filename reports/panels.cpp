#include "reports/panels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/curves.h"
#include "reports/number_text.h"

namespace trainyard::reports {

namespace {

std::string column_of(const Metric& metric) {
  std::string column = metric.name;
  std::ranges::replace(column, '-', '_');
  return column;
}

void add_keys(std::string& list, const Arm& arm) {
  for (const Observation& observation : arm.runs) {
    list += (list.empty() ? "'" : ", '") + observation.run->run_key + "'";
  }
}

// The rows that the figure averages, of the runs in this cell; people may run it as it stands: trainyard sql
// "…".
std::string query_of(const Cell& cell, const Metric& metric) {
  std::string keys;
  add_keys(keys, cell.baseline);
  for (const Arm& arm : cell.arms) add_keys(keys, arm);
  const std::string where = " WHERE run_key IN (" + keys + ")";
  const std::string column = column_of(metric);
  const std::string task = metric.task.empty() ? "" : "task_";
  return "SELECT DISTINCT strategy, seed, 'average' AS replica, epoch, " + column + "\nFROM " + task +
         "epoch_average" + where + "\nUNION ALL SELECT DISTINCT strategy, seed, replica, epoch, " + column +
         "\nFROM " + task + "epoch_replica" + where + "\nORDER BY strategy, seed, replica, epoch";
}

Table data_of(const std::vector<Series>& series, bool bars) {
  Table table;
  table.columns = bars ? std::vector<std::string>{"series", "mean", "low", "high", "seeds"}
                       : std::vector<std::string>{"epoch"};
  std::vector<double> epochs;
  for (const Series& one : series) {
    if (!bars) {
      for (const char* what : {"", " low", " high"}) table.columns.push_back(one.label + what);
    } else if (one.final) {
      table.rows.push_back({one.label, for_table(one.final->mean, 5), for_table(one.final->low, 5),
                            for_table(one.final->high, 5), std::to_string(one.final->n)});
    }
    for (const Point& point : one.points) epochs.push_back(point.x);
  }
  std::ranges::sort(epochs);
  epochs.erase(std::unique(epochs.begin(), epochs.end()), epochs.end());
  for (std::size_t i = 0; !bars && i < epochs.size(); ++i) {
    std::vector<std::string> row{plain_number(epochs[i])};
    for (const Series& one : series) {
      const auto found = std::ranges::find(one.points, epochs[i], &Point::x);
      const Point point = found == one.points.end() ? mean_point(epochs[i], {}) : *found;
      for (const double value : {point.mean, point.low, point.high}) row.push_back(for_table(value, 5));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string seeds_text(const std::vector<Series>& series) {
  int fewest = std::numeric_limits<int>::max();
  int most = 0;
  for (const Series& one : series) {
    if (!one.final) continue;
    fewest = std::min(fewest, one.final->n);
    most = std::max(most, one.final->n);
  }
  if (most <= 1) return "One seed: no interval can be given.";
  const std::string count =
      fewest == most ? std::to_string(most) : std::to_string(fewest) + " – " + std::to_string(most);
  return "Mean over " + count + " seeds" + (fewest == 1 ? " (one seed: no interval)" : "") +
         " with 95 % t interval.";
}

// Few seeds give intervals that reach below zero or above 100 %.
bool reaches_beyond(const Metric& metric, const std::vector<Series>& series) {
  const auto beyond = [&](const Point& point) {
    return (point.low < 0 && metric.kind != MetricKind::psnr) ||
           (metric.kind == MetricKind::accuracy && point.high > 100);
  };
  return std::ranges::any_of(series, [&](const Series& one) {
    return std::ranges::any_of(one.points, beyond) || (one.final && beyond(*one.final));
  });
}

std::string caption_of(const Metric& metric, const std::vector<Series>& series) {
  std::string caption = seeds_text(series);
  if (reaches_beyond(metric, series)) caption += " Intervals are cut where no value can be.";
  const bool averages = std::ranges::any_of(series, [](const Series& one) { return one.dash > 0; });
  if (metric.kind == MetricKind::time && averages) caption += " «average» is the slowest rank of each epoch.";
  if (metric.name == "train-seconds") {
    const bool warm = std::ranges::all_of(series, [](const Series& one) { return one.points.size() >= 3; });
    caption += warm ? " Strip: median over epochs after the first." : " Strip: median over all epochs.";
  }
  return caption;
}

std::string unit_of(const Metric& metric, bool log_scale) {
  switch (metric.kind) {
    case MetricKind::accuracy:
      return "%";
    case MetricKind::loss:
    case MetricKind::perplexity:
      return log_scale ? "log scale" : "";
    case MetricKind::time:
      return "s";
    case MetricKind::psnr:
      return "dB";
    case MetricKind::bleu:
      return "";
  }
  return "";
}

bool all_positive(const std::vector<Series>& series) {
  for (const Series& one : series) {
    if (std::ranges::any_of(one.points, [](const Point& point) { return point.mean <= 0; })) return false;
  }
  return true;
}

Figure make_panel(const Cell& cell, const Metric& metric, const CurveReader& reader) {
  Figure figure;
  figure.slug = cell.slug + "-" + metric.name;
  figure.subject = cell.label;
  figure.title = metric.title;
  figure.kind = metric.name == "validation-seconds" ? FigureKind::bars : FigureKind::lines;
  figure.x.integers = true;
  figure.series = reader.series(metric);
  const bool loss = metric.kind == MetricKind::loss || metric.kind == MetricKind::perplexity;
  figure.y.log = loss && all_positive(figure.series);
  figure.unit = unit_of(metric, figure.y.log);
  figure.final_label = metric.kind == MetricKind::time ? "median" : "last epoch";
  if (figure.series.empty()) {
    figure.missing = "not defined";
    return figure;
  }
  figure.caption = caption_of(metric, figure.series);
  figure.sql = query_of(cell, metric);
  figure.data = data_of(figure.series, figure.kind == FigureKind::bars);
  return figure;
}

}  // namespace

std::vector<Figure> make_panels(const ReportData& data, const Cell& cell, const Palette& palette) {
  const CurveReader reader(data, cell, palette);
  std::vector<Figure> panels;
  for (const Metric& metric : metrics()) {
    if (metric.epoch_value == nullptr) continue;
    Figure panel = make_panel(cell, metric, reader);
    if (metric.task.empty() || panel.missing.empty()) panels.push_back(std::move(panel));
  }
  return panels;
}

}  // namespace trainyard::reports
