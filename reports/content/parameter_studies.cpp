#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/content/figures_of_all_models.h"
#include "reports/content/panels.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

constexpr std::array series_roles{"single", "ddp",    "mpddp",
                                  "extra1", "extra2", "extra3"};  // colours of series

// Whether the means are above zero and the largest is more than ten times the smallest.
bool spans_decade(const std::vector<Point>& points) {
  double low = INFINITY;
  double high = 0;
  for (const Point& point : points) {
    low = std::min(low, point.mean);
    high = std::max(high, point.mean);
  }
  return low > 0 && high > 10 * low;
}

std::vector<std::string> texts_of(const ParameterStudy& study) {
  std::vector<std::string> texts;
  for (const double value : study.values) texts.push_back(plain_number(value));
  return texts;
}

std::string caption_of(const ParameterStudy& study, const StudiedMetric& studied, const Metric& metric) {
  std::string text = fmt::format(" {}.", study_title(study.axis, texts_of(study), "", {studied.title}));
  for (const std::string& name : study.tied)
    text += fmt::format(" {} changes with {}.", with_spaces(name), with_spaces(study.axis));
  if (!metric.kind->is_cost())
    return text + (metric.epoch_column.empty() ? " Value of the test." : " Value of the last epoch.");
  text += fmt::format(" Median over epochs after the first, of the {}.", metric.kind->over_ranks);
  return text + (studied.left_out > 0
                     ? fmt::format(" Runs left out because their times do not count: {}.", studied.left_out)
                     : "");
}

std::string sql_of(const ParameterStudy& study, const StudiedMetric& studied, const Metric& metric) {
  if (!metric.own_name.empty())
    return own_metric_sql(
        metric, joined(studied.runs, {}, "'), ('"),
        fmt::format(", (SELECT json FROM axis_value a WHERE a.run_key = r.run_key AND a.name = '{0}') AS {0}",
                    study.axis));
  return fmt::format(
      "SELECT DISTINCT f.run_key, f.model, f.strategy, a.json AS {0}, f.seed, f.{1}\n"
      "FROM task_final_metrics f\nJOIN axis_value a ON a.run_key = f.run_key AND a.name = '{0}'\n"
      "WHERE f.run_key IN ('{2}')\nORDER BY f.model, f.strategy, f.seed, f.run_key",
      study.axis, metric.column, joined(studied.runs, {}, "', '"));
}

Figure figure_of(const ParameterStudy& study, const StudiedMetric& studied, const std::string& slug,
                 std::vector<Series> series) {
  const Metric& metric = find_metric(studied.metric);
  Figure figure;
  figure.slug = slug;
  figure.subject = studied.title;
  figure.title = fmt::format("{} by {}", metric.title, with_spaces(study.axis));
  figure.sql = sql_of(study, studied, metric);
  Lines lines;
  lines.x.title = with_spaces(study.axis);
  lines.x.at = study.values;
  lines.x.log = study.values.front() > 0 && study.values.back() > 10 * study.values.front();
  lines.y.from_zero = metric.kind->is_cost();
  lines.y.least = metric.least_shown();
  lines.y.most = metric.most_shown();
  lines.markers = true;
  std::vector<Point> all;
  figure.data.columns = {"series", study.axis, "mean", "low", "high", "seeds"};
  for (const Series& one : series)
    for (const Point& point : one.points) {
      all.push_back(point);
      figure.data.rows.push_back(
          {one.label, point.x, point.mean, point.low, point.high, std::int64_t{point.n}});
    }
  figure.intervals = intervals_text(counts_of(series), "A vertical line");
  figure.caption = figure.intervals + caption_of(study, studied, metric);
  figure.own_legend = true;
  lines.y.log = metric.kind->logarithmic && spans_decade(all);
  figure.unit = unit_of(metric, lines.y.log);
  lines.series = std::move(series);
  figure.picture = std::move(lines);
  return figure;
}

std::vector<Series> series_of(const StudiedMetric& studied, const Palette& palette) {
  std::vector<Series> all;
  for (const StudyLine& line : studied.lines) {
    const auto arm = palette.find(line.label);
    const std::string colour =
        arm != palette.end() ? arm->second : series_roles[all.size() % series_roles.size()];
    all.push_back({"study " + line.label, line.label, line.label, colour, 0, line.points, std::nullopt});
  }
  return all;
}

}  // namespace

std::vector<Study> make_parameter_studies(const Report& report, const Palette& palette) {
  std::vector<Study> studies;
  std::set<std::string> slugs;
  for (const ParameterStudy& study : report.studies) {
    Study drawn{"study-" + slug_of(study.axis),
                upper_first(with_spaces(study.axis)),
                study_title(study.axis, texts_of(study), study.baseline, study.models),
                {}};
    for (const StudiedMetric& studied : study.metrics) {
      const std::vector<Series> series = series_of(studied, palette);
      // Every colour once per figure.
      for (std::size_t first = 0; first < series.size(); first += series_roles.size()) {
        const auto begin = series.begin() + static_cast<std::ptrdiff_t>(first);
        const auto end =
            begin + static_cast<std::ptrdiff_t>(std::min(series.size() - first, series_roles.size()));
        const std::string slug =
            slug_of(fmt::format("study {} {} {}", studied.model, studied.metric, with_spaces(study.axis)));
        drawn.figures.push_back(figure_of(study, studied, unique_slug(slug, slugs), {begin, end}));
      }
    }
    studies.push_back(std::move(drawn));
  }
  return studies;
}

std::string study_title(const std::string& axis, const std::vector<std::string>& values,
                        const std::string& baseline, const std::vector<std::string>& models) {
  std::vector<std::string> arms = values;
  std::erase(arms, baseline);
  const std::string against = baseline.empty() ? "" : " against " + baseline;
  const std::string on = models.size() > 4 ? fmt::format("{} models", models.size()) : all_of(models);
  return fmt::format("Effect of {} ({}{}) on {}", with_spaces(axis), all_of(arms), against, on);
}

}  // namespace trainyard::reports
