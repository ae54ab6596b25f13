#include "reports/content/panels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/answer.h"
#include "reports/answer/verdict_text.h"
#include "reports/content/curves.h"
#include "reports/content/scaling.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

// Query for the rows that the figure averages. It can be run with `trainyard sql`.
std::string query_of(const Cell& cell, const Metric& metric, const std::string& further = "") {
  const std::string keys = joined(run_keys(cell), {}, "'), ('");
  if (!metric.own_name.empty()) return own_metric_sql(metric, keys);
  const std::string column = metric.epoch_column + further;
  const std::string task = metric.task.empty() ? "" : "task_";
  const std::string counting =
      metric.kind->depends_on_others
          ? "\nWHERE (run_key, epoch) IN (SELECT run_key, epoch FROM run_epoch WHERE times_count)"
          : "";
  return fmt::format(
      "WITH cell (run_key) AS (VALUES ('{}'))\nSELECT DISTINCT strategy, seed, 'average' AS replica, epoch, "
      "{}\nFROM cell JOIN {}epoch_average USING (run_key){}\nUNION ALL SELECT DISTINCT strategy, seed, "
      "replica, epoch, {}\nFROM cell JOIN {}epoch_replica USING (run_key){}\nORDER BY strategy, seed, "
      "replica, "
      "epoch",
      keys, column, task, counting, column, task, counting);
}

Table bars_table(const std::vector<Series>& series) {
  Table table;
  table.columns = {"series", "mean", "low", "high", "seeds"};
  for (const Series& one : series) {
    if (!one.final) continue;
    const Point& point = *one.final;
    table.rows.push_back({one.label, point.mean, point.low, point.high, std::int64_t{point.n}});
  }
  return table;
}

std::string intervals_of_finals(const std::vector<Series>& series) {
  std::vector<int> counts;
  for (const Series& one : series)
    if (one.final) counts.push_back(one.final->n);
  return intervals_text(counts);
}

// Whether an interval of few seeds reaches below zero or above 100 %.
bool reaches_beyond(const Metric& metric, const std::vector<Series>& series) {
  const auto beyond = [&](const Point& point) {
    return point.low < metric.least_shown() || point.high > metric.most_shown();
  };
  return std::ranges::any_of(series, [&](const Series& one) {
    return std::ranges::any_of(one.points, beyond) || (one.final && beyond(*one.final));
  });
}

// What follows the sentence on intervals.
std::string caption_of(const Metric& metric, const std::vector<Series>& series) {
  std::string caption;
  if (reaches_beyond(metric, series)) caption += " Intervals are cut at the limits of the metric.";
  const bool ranks = std::ranges::any_of(series, [](const Series& one) { return one.dash > 0; });
  if (ranks) caption += with_label(" ", std::string(metric.kind->about_ranks));
  return caption + with_label(" ", std::string(metric.kind->about));
}

// What the final values at the right are, if they are not those of the last epoch.
std::string strip_caption_of(const Metric& metric, const std::vector<Series>& series) {
  if (!metric.kind->is_cost() || metric.name == "validation-seconds") return "";
  const bool warm = std::ranges::all_of(series, [](const Series& one) { return one.points.size() >= 3; });
  return warm ? " Right: median over epochs after the first." : " Right: median over all epochs.";
}

bool all_positive(const std::vector<Series>& series) {
  for (const Series& one : series) {
    if (std::ranges::any_of(one.points, [](const Point& point) { return point.mean <= 0; })) return false;
  }
  return true;
}

std::string published_name(const Metric& metric) {
  if (metric.name == "validation-seconds") return "total_validation_seconds";
  std::string name = metric.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::vector<std::pair<double, double>> points_of(const experiments::PublishedSeries& published, double scale,
                                                 const std::vector<Series>& series) {
  double first = std::numeric_limits<double>::infinity();
  double last = 0;
  for (const Series& one : series) {
    for (const Point& point : one.points) {
      first = std::min(first, point.x);
      last = std::max(last, point.x);
    }
  }
  std::vector<std::pair<double, double>> points;
  for (const experiments::PublishedPoint& point : published.points) {
    if (point.epoch > 0) points.emplace_back(point.epoch, scale * point.value);
    if (point.epoch == 0) points = {{first, scale * point.value}, {last, scale * point.value}};
  }
  return points;
}

const std::vector<experiments::PublishedSource>& sources_of(const Report& report) {
  static const std::vector<experiments::PublishedSource> none;
  return report.published ? report.published->sources : none;
}

// Published values of one model and metric as guides beside our curves and bars. One guide per arm and
// source, over the epochs of `series`.
std::vector<Guide> published_guides(const Report& report, const std::string& model, const Metric& metric,
                                    const std::vector<Series>& series) {
  std::vector<Guide> guides;
  const std::string name = published_name(metric);
  const bool several = sources_of(report).size() > 1;
  for (const experiments::PublishedSource& source : sources_of(report)) {
    for (const experiments::PublishedSeries& published : source.series) {
      if (published.model != model || published.metric != name) continue;
      guides.push_back({fmt::format("published {}{}", published.arm, several ? ", " + source.name : ""),
                        "published", points_of(published, metric.kind->scale, series)});
    }
  }
  return guides;
}

// " Dash-dotted: published values …"; empty if there are no guides.
std::string published_caption(const Report& report, const std::vector<Guide>& guides) {
  if (guides.empty()) return "";
  std::string names;
  for (const experiments::PublishedSource& source : sources_of(report))
    names += (names.empty() ? "" : ", ") + source.name;
  return " Dash-dotted: published values (" + names + ") from other hardware, not used in verdicts.";
}

// Empty if no run has the metric.
std::optional<Figure> make_panel(const Report& report, const Cell& cell, const Metric& metric,
                                 const Palette& palette) {
  Figure figure;
  figure.slug = fmt::format("{}-{}", cell.slug, metric.name);
  figure.subject = cell.label;
  figure.title = metric.title;
  std::vector<Series> series = series_of(cell, metric, palette);
  const bool log = metric.kind->logarithmic && all_positive(series);
  figure.unit = unit_of(metric, log);
  if (series.empty()) return std::nullopt;
  std::vector<Guide> guides = published_guides(report, cell.model, metric, series);
  figure.intervals = intervals_of_finals(series);
  figure.caption = figure.intervals + caption_of(metric, series) + published_caption(report, guides) +
                   (metric.kind->depends_on_others ? uncounted_text(report, {&cell}) : "");
  figure.strip_caption = strip_caption_of(metric, series);
  figure.sql = query_of(cell, metric);
  if (metric.name == "validation-seconds") {
    figure.data = bars_table(series);
    figure.picture = Bars{std::move(series), std::move(guides)};
    return figure;
  }
  figure.data = epochs_table(series);
  Lines lines{.x = {.title = "epoch", .integers = true},
              .y = {.title = "",
                    .log = log,
                    .from_zero = metric.kind->is_cost(),
                    .least = metric.least_shown(),
                    .most = metric.most_shown()},
              .series = std::move(series),
              .final_label = metric.kind->is_cost() ? "median" : "last epoch",
              .guides = std::move(guides)};
  figure.picture = std::move(lines);
  return figure;
}

// One row per series and epoch, as epochs end at different seconds in each series.
Table seconds_table(const std::vector<Series>& series) {
  Table table;
  table.columns = {"series", "epoch", "seconds", "mean", "low", "high", "seeds"};
  for (const Series& one : series) {
    std::int64_t epoch = 0;
    for (const Point& point : one.points)
      table.rows.push_back(
          {one.label, ++epoch, point.x, point.mean, point.low, point.high, std::int64_t{point.n}});
  }
  return table;
}

// Validation loss over elapsed time: how long an arm takes to reach a loss.
std::optional<Figure> make_clock_panel(const Report& report, const Cell& cell, const Palette& palette) {
  const Metric& metric = find_metric("validation-loss");
  Figure figure;
  figure.slug = cell.slug + "-validation-loss-over-time";
  figure.subject = cell.label;
  figure.title = "Validation loss over time";
  Lines lines;
  lines.series = series_of_arms(cell, metric, palette, &Curve::by_second);
  if (lines.series.empty()) return std::nullopt;
  lines.x.title = "seconds";
  lines.x.from_zero = true;
  lines.y.least = 0;
  lines.y.log = all_positive(lines.series);
  figure.unit = unit_of(metric, lines.y.log);
  figure.intervals = intervals_text(counts_of(lines.series));
  figure.caption = figure.intervals +
                   " Seconds: elapsed training and validation time of the slowest rank, without set-up." +
                   uncounted_text(report, {&cell});
  figure.sql = query_of(cell, metric, ", train_seconds, validation_seconds");
  figure.data = seconds_table(lines.series);
  figure.picture = std::move(lines);
  return figure;
}

// Differences from the baseline by epoch, beside curves that lie on each other.

constexpr double most_distance = 0.03;  // of the extent of the curves

using Curves = std::vector<std::map<double, double>>;  // by epoch, one per arm

Curves arms_of(const Lines& lines) {
  Curves curves;
  for (const Series& series : lines.series) {
    if (series.dash > 0) continue;
    std::map<double, double>& curve = curves.emplace_back();
    for (const Point& point : series.points) curve[point.x] = lines.y.log ? std::log(point.mean) : point.mean;
  }
  return curves;
}

double extent_of(const Curves& curves) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const auto& curve : curves)
    for (const auto& [epoch, value] : curve) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  return high - low;
}

// Mean distance over the epochs of both curves; infinite if they share none.
double distance(const std::map<double, double>& one, const std::map<double, double>& other) {
  double sum = 0;
  int count = 0;
  for (const auto& [epoch, value] : one) {
    const auto found = other.find(epoch);
    if (found == other.end()) continue;
    sum += std::abs(value - found->second);
    ++count;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::infinity();
}

// Mean difference from the baseline at each epoch, with its interval and the margin, on the scale of the
// verdict. Empty if the curves of `panel` do not lie on each other, or without pairs or a verdict.
std::optional<Figure> make_difference(const Figure& panel, const Cell& cell, const Metric& metric,
                                      const Palette& palette) {
  const auto* curves = std::get_if<Lines>(&panel.picture);
  const Verdict* verdict = cell.find_with_margin(metric.name);
  if (curves == nullptr || verdict == nullptr || !lie_on_each_other(*curves)) return std::nullopt;
  Lines lines;
  lines.series = series_of_arms(cell, metric, palette, &Curve::differences);
  if (lines.series.empty()) return std::nullopt;
  lines.x = curves->x;
  lines.margin = std::pair(verdict->margin->low, verdict->margin->high);
  Figure figure;
  figure.slug = panel.slug + "-difference";
  figure.subject = panel.subject;
  figure.title = panel.title + ", difference from " + cell.baseline.value;
  figure.unit = unit_of(verdict->scale);
  figure.intervals = intervals_text(counts_of(lines.series));
  figure.caption =
      figure.intervals +
      " The curves lie on each other, so this figure has their differences: the mean over pairs, "
      "at each epoch. Shaded strip: the margin, inside which a difference counts as no change.";
  figure.sql = panel.sql;
  figure.data = epochs_table(lines.series);
  figure.picture = std::move(lines);
  return figure;
}

}  // namespace

std::vector<int> counts_of(const std::vector<Series>& series) {
  std::vector<int> counts;
  for (const Series& one : series)
    for (const Point& point : one.points) counts.push_back(point.n);
  return counts;
}

std::string intervals_text(const std::vector<int>& counts, const std::string& what) {
  const int fewest = counts.empty() ? 0 : *std::ranges::min_element(counts);
  const int most = counts.empty() ? 0 : *std::ranges::max_element(counts);
  if (most <= 1) return "One seed, so no interval is shown.";
  const std::string count = fewest == most ? std::to_string(most) : fmt::format("{} – {}", fewest, most);
  return fmt::format(
      "Each value is the mean over {} seeds{}. {} is the 95 % t interval of this mean: if the experiment "
      "were "
      "repeated many times, 95 % of such intervals would contain the true mean.",
      count, fewest == 1 ? " (one seed: no interval)" : "", what);
}

std::string unit_of(const Metric& metric, bool log_scale) {
  return log_scale && metric.kind->logarithmic ? "log scale" : std::string(metric.kind->shown_unit);
}

// One row per epoch and three columns per series, as page.js needs them for the crosshair.
Table epochs_table(const std::vector<Series>& series) {
  Table table;
  table.columns = {"epoch"};
  std::set<double> epochs;
  for (const Series& one : series) {
    for (const char* what : {"", " low", " high"}) table.columns.emplace_back(one.label + what);
    for (const Point& point : one.points) epochs.insert(point.x);
  }
  for (const double epoch : epochs) {
    TableRow row{static_cast<std::int64_t>(epoch)};
    for (const Series& one : series) {
      const auto found = std::ranges::find(one.points, epoch, &Point::x);
      const Point point = found == one.points.end() ? Point{epoch, NAN, NAN, NAN, 0} : *found;
      row.insert(row.end(), {point.mean, point.low, point.high});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool lie_on_each_other(const Lines& lines) {
  const Curves curves = arms_of(lines);
  if (curves.size() < 2) return false;
  const double most = most_distance * extent_of(curves);
  for (std::size_t i = 0; i < curves.size(); ++i)
    for (std::size_t j = i + 1; j < curves.size(); ++j)
      if (!(distance(curves[i], curves[j]) <= most)) return false;
  return true;
}

std::vector<Figure> make_panels(const Report& report, const Cell& cell, const Palette& palette) {
  std::vector<Figure> panels;
  for (const Metric& metric : metrics()) {
    if (metric.epoch_column.empty()) continue;
    std::optional<Figure> panel = make_panel(report, cell, metric, palette);
    if (!panel) continue;
    std::optional<Figure> difference = make_difference(*panel, cell, metric, palette);
    panels.push_back(std::move(*panel));
    if (difference) panels.push_back(std::move(*difference));
  }
  if (std::optional<Figure> clock = make_clock_panel(report, cell, palette))
    panels.push_back(std::move(*clock));
  std::ranges::move(make_scaling(cell, palette), std::back_inserter(panels));
  return panels;
}

std::string lacking_text(const Report& report, const Cell& cell, const std::vector<Figure>& panels) {
  const std::string uncounted_runs = uncounted_text(report, {&cell});
  std::string undefined;
  std::string unrecorded;
  std::string uncounted;
  for (const Metric& metric : metrics()) {
    const std::string slug = fmt::format("{}-{}", cell.slug, metric.name);
    const bool drawn = std::ranges::find(panels, slug, &Figure::slug) != panels.end();
    if (drawn || metric.epoch_column.empty() || !metric.is_of_every_model()) continue;
    const bool known = std::ranges::find(cell.not_defined, metric.name) == cell.not_defined.end();
    const bool counts = !metric.kind->depends_on_others || uncounted_runs.empty();
    std::string& list = !known ? undefined : counts ? unrecorded : uncounted;
    list.append(list.empty() ? "" : ", ").append(lower_first(metric.title));
  }
  std::vector<std::string> texts;
  if (!undefined.empty()) texts.push_back("Not defined for this task: " + undefined + ".");
  if (!unrecorded.empty()) texts.push_back("Not recorded by any run: " + unrecorded + ".");
  if (!uncounted.empty()) texts.push_back("Not drawn: " + uncounted + "." + uncounted_runs);
  return joined(texts, {}, " ");
}

}  // namespace trainyard::reports
