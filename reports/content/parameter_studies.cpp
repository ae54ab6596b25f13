#include "reports/content/parameter_studies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "reports/content/panels.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

constexpr std::array series_roles{"single", "ddp",    "mpddp",
                                  "extra1", "extra2", "extra3"};  // colours of series

// Empty if the value is not one number.
std::optional<double> number_of(const db::RunSummary& run, const std::string& axis) {
  const auto found = run.axes.find(axis);
  if (found == run.axes.end()) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&found->second)) return *number;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&found->second); list && list->size() == 1)
    return static_cast<double>(list->front());
  return std::nullopt;
}

using Runs = std::vector<const Observation*>;

// The finished runs of all comparisons, each once, in the order of the plan.
Runs finished_runs(const ReportData& data, const std::vector<Comparison>& comparisons) {
  std::map<std::string, const Observation*> by_key;
  const auto add = [&](const Arm& arm) {
    for (const Observation& observation : arm.runs)
      if (observation.final != nullptr) by_key.emplace(observation.run->run_key, &observation);
  };
  for (const Comparison& comparison : comparisons)
    for (const CellVerdicts& judged : comparison.cells) {
      add(judged.cell.baseline);
      std::ranges::for_each(judged.cell.arms, add);
    }
  Runs runs;
  for (const db::RunSummary& run : data.runs)
    if (const auto found = by_key.extract(run.run_key)) runs.push_back(found.mapped());
  return runs;
}

struct NumericAxis {
  std::string name;
  std::vector<double> values;     // ascending
  std::vector<std::string> tied;  // other axes that change with it
};

std::vector<double> values_of(const Runs& runs, const std::string& axis) {
  std::set<double> values;
  for (const Observation* one : runs)
    if (const auto value = number_of(*one->run, axis)) values.insert(*value);
  return {values.begin(), values.end()};
}

bool is_numeric(const Runs& runs, const std::string& axis) {
  return std::ranges::all_of(runs, [&](const Observation* one) {
    return !one->run->axes.contains(axis) || number_of(*one->run, axis).has_value();
  });
}

// Whether each value of one axis goes with exactly one value of the other.
bool change_together(const Runs& runs, const std::string& one, const std::string& other) {
  std::map<double, double> to;
  std::map<double, double> from;
  return std::ranges::all_of(runs, [&](const Observation* observation) {
    const auto x = number_of(*observation->run, one);
    const auto y = number_of(*observation->run, other);
    return x && y && to.try_emplace(*x, *y).first->second == *y &&
           from.try_emplace(*y, *x).first->second == *x;
  });
}

// Axes that are not model, strategy, seed or pairing.
std::vector<std::string> further_axes(const ReportData& data, const std::vector<Comparison>& comparisons) {
  std::vector<std::string> names = data.plan.varied;
  std::erase_if(names, [&](const std::string& name) {
    return name == "model" || name == "strategy" || name == "seed" ||
           std::ranges::any_of(comparisons, [&](const Comparison& comparison) {
             return std::ranges::find(comparison.compare.pair, name) != comparison.compare.pair.end();
           });
  });
  return names;
}

std::vector<NumericAxis> numeric_axes(const Runs& runs, const std::vector<std::string>& names) {
  std::vector<NumericAxis> axes;
  for (const std::string& name : names) {
    const std::vector<double> values = values_of(runs, name);
    if (values.size() < 2 || !is_numeric(runs, name)) continue;
    const auto same = std::ranges::find_if(
        axes, [&](const NumericAxis& axis) { return change_together(runs, axis.name, name); });
    if (same != axes.end()) {
      same->tied.push_back(name);
    } else {
      axes.push_back({name, values, {}});
    }
  }
  return axes;
}

// The metrics of a study: those of the published table, those of a single task, and the time per epoch.
std::vector<const Metric*> studied_metrics() {
  std::vector<const Metric*> found;
  for (const Metric& metric : metrics()) {
    const bool of_task =
        !metric.task.empty() && (metric.name.starts_with("validation-") || metric.of->phases().size() == 1);
    if (metric.published || of_task) found.push_back(&metric);
  }
  return found;
}

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

// NaN if the run does not have the metric, or its time does not count.
double metric_value(const Observation& observation, const Metric& metric) {
  if (is_cost(metric.kind) && !observation.final->times_count) return std::nan("");
  return shown_scale(metric.kind) * (*observation.final)[metric.final_value];
}

// Composes the studies of one report.
class StudyMaker {
 public:
  StudyMaker(const ReportData& data, const std::vector<Comparison>& comparisons, const Palette& palette)
      : comparisons_(comparisons),
        palette_(palette),
        runs_(finished_runs(data, comparisons)),
        further_(further_axes(data, comparisons)),
        axes_(numeric_axes(runs_, further_)) {}

  std::vector<Study> studies() {
    std::vector<Study> result;
    for (const NumericAxis& axis : axes_) {
      Study study{"study-" + slug_of(axis.name), upper_first(with_spaces(axis.name)), title_of(axis), {}};
      for (const auto& [model, runs] : by_model())
        for (const Metric* metric : studied_metrics()) add_lines(study, axis, model, runs, *metric);
      if (!study.figures.empty()) result.push_back(std::move(study));
    }
    return result;
  }

 private:
  using Groups = std::vector<std::pair<std::string, Runs>>;  // by name, in the order of the runs

  static void add_run(Groups& groups, const std::string& name, const Observation* run) {
    auto found = std::ranges::find(groups, name, &Groups::value_type::first);
    if (found == groups.end()) found = groups.insert(groups.end(), {name, {}});
    found->second.push_back(run);
  }

  Groups by_model() const {
    Groups models;
    for (const Observation* one : runs_) add_run(models, reports::title_of(*one->run), one);
    return models;
  }

  std::vector<std::string> models() const {
    std::vector<std::string> names;
    for (const auto& [model, runs] : by_model()) names.push_back(model);
    return names;
  }

  std::string title_of(const NumericAxis& axis) const {
    const auto compared = std::ranges::find_if(
        comparisons_, [&](const Comparison& comparison) { return comparison.compare.axis == axis.name; });
    const std::string baseline = compared == comparisons_.end() ? "" : compared->compare.baseline;
    return study_title(axis.name, texts_of(axis), baseline, models());
  }

  // Values that tell series apart: strategy and further axes that differ between `runs`, except `axis`.
  std::string label_of(const Observation& observation, const Runs& runs, const NumericAxis& axis) const {
    std::string label;
    const auto add = [&](const std::string& name) {
      const std::string value = reports::value_of(*observation.run, name);
      const bool differs = std::ranges::any_of(
          runs, [&](const Observation* other) { return reports::value_of(*other->run, name) != value; });
      if (!differs) return;
      label += (label.empty() ? "" : ", ") + (name == "strategy" ? value : with_spaces(name) + " " + value);
    };
    add("strategy");
    for (const std::string& name : further_)
      if (name != axis.name && std::ranges::find(axis.tied, name) == axis.tied.end()) add(name);
    return label;
  }

  // Runs with a value of `axis`, by label.
  Groups by_label(const Runs& runs, const NumericAxis& axis) const {
    Groups groups;
    for (const Observation* one : runs)
      if (number_of(*one->run, axis.name)) add_run(groups, label_of(*one, runs, axis), one);
    return groups;
  }

  Series series_of(const NumericAxis& axis, const std::string& label, const Runs& runs, const Metric& metric,
                   std::size_t place) const {
    const std::string name = label.empty() ? runs.front()->run->strategy : label;
    const auto arm = palette_.find(name);
    const std::string colour =
        arm != palette_.end() ? arm->second : series_roles[place % series_roles.size()];
    Series series{"study " + name, name, name, colour, 0, {}, std::nullopt};
    std::map<double, std::vector<double>> values;
    for (const Observation* one : runs)
      values[*number_of(*one->run, axis.name)].push_back(metric_value(*one, metric));
    for (const auto& [x, at] : values)
      if (const Point point = mean_point(x, at); point.n > 0) series.points.push_back(point);
    return series;
  }

  void add_lines(Study& study, const NumericAxis& axis, const std::string& model, const Runs& runs,
                 const Metric& metric) {
    std::vector<Series> series;
    for (const auto& [label, of_label] : by_label(runs, axis)) {
      Series one = series_of(axis, label, of_label, metric, series.size());
      if (!one.points.empty()) series.push_back(std::move(one));
    }
    const bool several = std::ranges::any_of(series, [](const Series& one) { return one.points.size() > 1; });
    if (!several) return;
    // Every colour once per figure.
    for (std::size_t first = 0; first < series.size(); first += series_roles.size()) {
      const std::size_t last = std::min(series.size(), first + series_roles.size());
      const auto at = [&](std::size_t i) { return series.begin() + static_cast<std::ptrdiff_t>(i); };
      study.figures.push_back(lines_figure(axis, model, runs, metric, {at(first), at(last)}));
    }
  }

  Figure lines_figure(const NumericAxis& axis, const std::string& model, const Runs& runs,
                      const Metric& metric, std::vector<Series> series) {
    Figure figure;
    figure.subject = model;
    figure.title = fmt::format("{} by {}", metric.title, with_spaces(axis.name));
    figure.sql = sql_of(metric, runs, axis);
    const std::string slug =
        slug_of(fmt::format("study {} {} {}", runs.front()->run->model, metric.name, with_spaces(axis.name)));
    figure.slug = slug;
    for (int i = 2; !slugs_.insert(figure.slug).second; ++i) figure.slug = fmt::format("{}-{}", slug, i);
    Lines lines;
    lines.x.title = with_spaces(axis.name);
    lines.x.at = axis.values;
    lines.x.log = axis.values.front() > 0 && axis.values.back() > 10 * axis.values.front();
    lines.y.from_zero = is_cost(metric.kind);
    if (metric.kind != MetricKind::psnr) lines.y.least = 0;
    if (metric.kind == MetricKind::accuracy) lines.y.most = 100;
    lines.markers = true;
    std::vector<Point> all;
    std::vector<int> counts;
    figure.data.columns = {"series", axis.name, "mean", "low", "high", "seeds"};
    for (const Series& one : series)
      for (const Point& point : one.points) {
        all.push_back(point);
        counts.push_back(point.n);
        figure.data.rows.push_back(
            {one.label, point.x, point.mean, point.low, point.high, std::int64_t{point.n}});
      }
    figure.intervals = intervals_text(counts, "A vertical line");
    figure.caption = figure.intervals + caption_of(axis, model, runs, metric);
    figure.own_legend = true;
    const bool loss = metric.kind == MetricKind::loss || metric.kind == MetricKind::perplexity;
    lines.y.log = loss && spans_decade(all);
    figure.unit = unit_of(metric, lines.y.log);
    lines.series = std::move(series);
    figure.picture = std::move(lines);
    return figure;
  }

  std::string caption_of(const NumericAxis& axis, const std::string& model, const Runs& runs,
                         const Metric& metric) const {
    std::string text = fmt::format(" {}.", study_title(axis.name, texts_of(axis), "", {model}));
    for (const std::string& name : axis.tied)
      text += fmt::format(" {} changes with {}.", with_spaces(name), with_spaces(axis.name));
    return text + further_caption(runs, metric);
  }

  static std::vector<std::string> texts_of(const NumericAxis& axis) {
    std::vector<std::string> texts;
    for (const double value : axis.values) texts.push_back(plain_number(value));
    return texts;
  }

  static std::string further_caption(const Runs& runs, const Metric& metric) {
    if (metric.kind != MetricKind::time)
      return metric.epoch_value ? " Value of the last epoch." : " Value of the test.";
    const auto left_out =
        std::ranges::count_if(runs, [](const Observation* one) { return !one->final->times_count; });
    return " Median over epochs after the first, of the slowest rank." +
           (left_out > 0 ? fmt::format(" Runs left out because their times do not count: {}.", left_out)
                         : "");
  }

  static std::string sql_of(const Metric& metric, const Runs& runs, const NumericAxis& axis) {
    std::string keys;
    for (const Observation* one : runs)
      if (!std::isnan(metric_value(*one, metric)))
        keys += fmt::format("{}{}'", keys.empty() ? "'" : ", '", one->run->run_key);
    return fmt::format(
        "SELECT DISTINCT f.run_key, f.model, f.strategy, a.json AS {0}, f.seed, f.{1}\n"
        "FROM task_final_metrics f\nJOIN axis_value a ON a.run_key = f.run_key AND a.name = '{0}'\n"
        "WHERE f.run_key IN ({2})\nORDER BY f.model, f.strategy, f.seed, f.run_key",
        axis.name, export_column(metric), keys);
  }

  const std::vector<Comparison>& comparisons_;
  const Palette& palette_;
  Runs runs_;
  std::vector<std::string> further_;
  std::vector<NumericAxis> axes_;
  std::set<std::string> slugs_;
};

}  // namespace

std::vector<Study> make_parameter_studies(const ReportData& data, const std::vector<Comparison>& comparisons,
                                          const Palette& palette) {
  return StudyMaker(data, comparisons, palette).studies();
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
