#include "reports/content/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

constexpr std::int64_t average_of_replicas = -1;

// Runs to draw: the finished ones, or running ones if none has finished.
std::vector<const db::RunSummary*> drawn_runs(const Arm& arm) {
  std::vector<const db::RunSummary*> finished;
  std::vector<const db::RunSummary*> open;
  for (const Observation& observation : arm.runs) {
    if (observation.run->status == "finished") finished.push_back(observation.run);
    if (observation.run->status != "failed" && observation.run->epochs_done > 0)
      open.push_back(observation.run);
  }
  return finished.empty() ? open : finished;
}

std::int64_t replicas_of(const Arm& arm) {
  std::int64_t replicas = 1;
  for (const Observation& observation : arm.runs) replicas = std::max(replicas, observation.run->replicas);
  return replicas;
}

bool has_stages(const Arm& arm) {
  return std::ranges::any_of(arm.runs,
                             [](const Observation& observation) { return observation.run->stages > 1; });
}

std::vector<Curve> read_curves(const std::map<std::string, std::vector<const db::EpochRow*>>& rows,
                               const std::vector<const db::RunSummary*>& runs, const Metric& metric,
                               std::int64_t replica) {
  std::vector<Curve> curves;
  const double scale = shown_scale(metric.kind);
  for (const db::RunSummary* run : runs) {
    const auto found = rows.find(run->run_key);
    if (found == rows.end()) continue;
    Curve curve;
    curve.reserve(found->second.size());
    for (const db::EpochRow* row : found->second) {
      if (row->replica == replica) curve.emplace_back(row->epoch, scale * (*row)[*metric.epoch_value]);
    }
    if (!curve.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

using ByEpoch = std::vector<std::pair<std::int64_t, std::vector<double>>>;  // in order of epochs

// Add a curve, whose epochs are in order.
void add_values(ByEpoch& by_epoch, const Curve& curve) {
  std::size_t place = 0;
  for (const auto& [epoch, value] : curve) {
    while (place < by_epoch.size() && by_epoch[place].first < epoch) ++place;
    if (place == by_epoch.size() || by_epoch[place].first != epoch)
      by_epoch.insert(by_epoch.begin() + static_cast<std::ptrdiff_t>(place), {epoch, {}});
    by_epoch[place].second.push_back(value);
  }
}

void fill(Series& series, const std::vector<Curve>& curves, const Metric& metric) {
  ByEpoch by_epoch;
  std::vector<double> finals;
  for (const Curve& curve : curves) {
    add_values(by_epoch, curve);
    finals.push_back(final_number(metric, curve));
  }
  for (const auto& [epoch, values] : by_epoch) {
    const Point point = mean_point(static_cast<double>(epoch), values);
    if (point.n > 0) series.points.push_back(point);
  }
  const Point final = mean_point(0, finals);
  if (final.n > 0) series.final = final;
}

}  // namespace

std::string key_of(const Arm& arm) {
  return arm.value + (replicas_of(arm) > 1 ? " average" : "");
}

std::string label_of(const Arm& arm, const Metric& metric) {
  if (replicas_of(arm) == 1) return arm.value;
  const bool sum = metric.kind == MetricKind::energy;
  return arm.value + (metric.kind == MetricKind::time ? " slowest rank" : sum ? " all devices" : " average");
}

Point mean_point(double x, const std::vector<double>& values) {
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  Point point{x, std::nan(""), std::nan(""), std::nan(""), static_cast<int>(finite.size())};
  if (finite.size() == 1) point.mean = finite.front();
  if (finite.size() < 2) return point;
  const Estimate estimate = paired_estimate(finite);
  const Interval interval = confidence_interval(estimate, 0.95);
  point.mean = estimate.mean;
  point.low = interval.low;
  point.high = interval.high;
  return point;
}

double final_number(const Metric& metric, const Curve& curve) {
  if (curve.empty()) return std::nan("");
  if (!is_cost(metric.kind)) return curve.back().second;
  std::vector<double> values;
  const bool sum = metric.name == "validation-seconds";
  for (const auto& [epoch, value] : curve) {
    const bool warm_up = !sum && curve.size() >= 3 && epoch == curve.front().first;
    if (!warm_up) values.push_back(value);
  }
  return sum ? std::accumulate(values.begin(), values.end(), 0.0) : median(values);
}

// The rows of a run are adjacent, so there is one search per run.
CurveReader::Rows CurveReader::rows_of(const Cell& cell, const std::vector<db::EpochRow>& all) {
  Rows rows;
  for (const Observation& observation : cell.baseline.runs) rows[observation.run->run_key];
  for (const Arm& arm : cell.arms) {
    for (const Observation& observation : arm.runs) rows[observation.run->run_key];
  }
  auto found = rows.end();
  const std::string* last = nullptr;
  for (const db::EpochRow& row : all) {
    if (last == nullptr || *last != row.run_key) found = rows.find(row.run_key);
    last = &row.run_key;
    if (found != rows.end()) found->second.push_back(&row);
  }
  return rows;
}

CurveReader::CurveReader(const ReportData& data, const Cell& cell, const Palette& palette)
    : averages_(rows_of(cell, data.averages)),
      replicas_(rows_of(cell, data.replicas)),
      cell_(cell),
      palette_(palette) {}

std::vector<Series> CurveReader::series(const Metric& metric) const {
  std::vector<Series> result;
  add_arm(result, cell_.baseline, metric);
  for (const Arm& arm : cell_.arms) add_arm(result, arm, metric);
  add_ranks(result, cell_.baseline, metric);
  for (const Arm& arm : cell_.arms) add_ranks(result, arm, metric);
  return result;
}

std::vector<Series> CurveReader::over_seconds(const Metric& metric) const {
  std::vector<Series> result;
  const auto add = [&](const Arm& arm) {
    Series series{key_of(arm), label_of(arm, metric),       arm.value,   palette_.at(arm.value),
                  0,           seconds_points(arm, metric), std::nullopt};
    if (!series.points.empty()) result.push_back(std::move(series));
  };
  add(cell_.baseline);
  for (const Arm& arm : cell_.arms) add(arm);
  return result;
}

// One point per epoch. x is the mean end time of the epoch over seeds.
std::vector<Point> CurveReader::seconds_points(const Arm& arm, const Metric& metric) const {
  std::map<std::int64_t, std::vector<double>> values;
  std::map<std::int64_t, std::vector<double>> ends;
  for (const db::RunSummary* run : drawn_runs(arm)) {
    const auto found = averages_.find(run->run_key);
    if (found == averages_.end()) continue;
    double seconds = 0;
    for (const db::EpochRow* row : found->second) {
      const double validation = (*row)["validation_seconds"];
      seconds += (*row)["train_seconds"] + (std::isfinite(validation) ? validation : 0);
      values[row->epoch].push_back(shown_scale(metric.kind) * (*row)[*metric.epoch_value]);
      ends[row->epoch].push_back(seconds);
    }
  }
  std::vector<Point> points;
  for (const auto& [epoch, at_epoch] : values) {
    const Point point = mean_point(mean_point(0, ends[epoch]).mean, at_epoch);
    if (point.n > 0 && std::isfinite(point.x)) points.push_back(point);
  }
  return points;
}

void CurveReader::add(std::vector<Series>& result, Series series, const std::vector<Curve>& curves,
                      const Metric& metric) {
  fill(series, curves, metric);
  if (!series.points.empty()) result.push_back(std::move(series));
}

void CurveReader::add_arm(std::vector<Series>& result, const Arm& arm, const Metric& metric) const {
  add(result, {key_of(arm), label_of(arm, metric), arm.value, palette_.at(arm.value), 0, {}, std::nullopt},
      read_curves(averages_, drawn_runs(arm), metric, average_of_replicas), metric);
}

void CurveReader::add_ranks(std::vector<Series>& result, const Arm& arm, const Metric& metric) const {
  const std::vector<const db::RunSummary*> runs = drawn_runs(arm);
  const std::int64_t replicas = replicas_of(arm);
  const std::string noun = has_stages(arm) ? "replica" : "rank";
  for (std::int64_t replica = 0; replicas > 1 && replica < replicas; ++replica) {
    const std::string label = fmt::format("{} {} {}", arm.value, noun, replica);
    const int dash = static_cast<int>(replica) + 1;
    add(result, {label, label, arm.value, palette_.at(arm.value), dash, {}, std::nullopt},
        read_curves(replicas_, runs, metric, replica), metric);
  }
}

namespace {

// At the epochs of both curves. Both are in order of epochs.
Curve difference(const Curve& before, const Curve& after, Scale scale) {
  Curve curve;
  auto place = before.begin();
  for (const auto& [epoch, value] : after) {
    while (place != before.end() && place->first < epoch) ++place;
    if (place == before.end()) break;
    if (place->first == epoch)
      curve.emplace_back(epoch,
                         scale == Scale::log_ratio ? std::log(value / place->second) : value - place->second);
  }
  return curve;
}

}  // namespace

std::vector<Series> CurveReader::differences(const Metric& metric, Scale scale) const {
  std::vector<Series> result;
  for (const Arm& arm : cell_.arms) {
    ByEpoch by_epoch;
    for (const Observation& observation : arm.runs) {
      const auto partner = std::ranges::find(cell_.baseline.runs, observation.pair, &Observation::pair);
      if (partner == cell_.baseline.runs.end()) continue;
      for (const Curve& before : read_curves(averages_, {partner->run}, metric, average_of_replicas))
        for (const Curve& after : read_curves(averages_, {observation.run}, metric, average_of_replicas))
          add_values(by_epoch, difference(before, after, scale));
    }
    Series series{key_of(arm), label_of(arm, metric), arm.value, palette_.at(arm.value), 0, {}, std::nullopt};
    for (const auto& [epoch, values] : by_epoch) {
      Point point = mean_point(static_cast<double>(epoch), values);
      if (scale == Scale::log_ratio)
        for (double Point::*value : {&Point::mean, &Point::low, &Point::high})
          point.*value = 100 * std::expm1(point.*value);
      if (point.n > 0) series.points.push_back(point);
    }
    if (!series.points.empty()) result.push_back(std::move(series));
  }
  return result;
}

namespace {

constexpr std::array roles{"ddp", "mpddp", "extra1", "extra2", "extra3"};

std::string own_role(const std::string& value) {
  if (value == "ddp") return "ddp";
  if (value == "mp-ddp") return "mpddp";
  return "";
}

}  // namespace

Palette make_palette(const std::vector<Cell>& cells) {
  Palette palette;
  std::set<std::string> used;
  std::vector<std::string> others;
  for (const Cell& cell : cells) {
    palette[cell.baseline.value] = "single";
    for (const Arm& arm : cell.arms) {
      if (const std::string role = own_role(arm.value); !role.empty()) {
        palette[arm.value] = role;
        used.insert(role);
      } else if (std::ranges::find(others, arm.value) == others.end()) {
        others.push_back(arm.value);
      }
    }
  }
  std::size_t next = 0;
  for (const std::string& value : others) {
    for (std::size_t tried = 0; tried < roles.size() && used.count(roles[next % roles.size()]) != 0; ++tried)
      ++next;
    palette[value] = roles[next++ % roles.size()];
  }
  return palette;
}

const std::vector<Series>& series_of(const Figure& figure) {
  static const std::vector<Series> none;
  if (const auto* lines = std::get_if<Lines>(&figure.picture)) return lines->series;
  if (const auto* bars = std::get_if<Bars>(&figure.picture)) return bars->series;
  return none;
}

std::vector<Series> legend(const std::vector<Figure>& figures) {
  std::vector<Series> arms;
  std::vector<Series> ranks;
  std::set<std::string> seen;
  for (const Figure& figure : figures) {
    for (const Series& series : series_of(figure)) {
      if (figure.own_legend || !seen.insert(series.key).second) continue;
      const std::string& label = series.dash > 0 ? series.label : series.short_label;
      (series.dash > 0 ? ranks : arms)
          .push_back({series.key, label, series.short_label, series.colour, series.dash, {}, std::nullopt});
    }
  }
  std::ranges::move(ranks, std::back_inserter(arms));
  return arms;
}

}  // namespace trainyard::reports
