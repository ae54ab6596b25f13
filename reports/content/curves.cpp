#include "reports/content/curves.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace trainyard::reports {

std::string key_of(const Arm& arm) {
  return arm.value + (arm.replicas > 1 ? " average" : "");
}

std::string label_of(const Arm& arm, const Metric& metric) {
  return arm.replicas == 1 ? arm.value : fmt::format("{} {}", arm.value, metric.kind->over_ranks);
}

namespace {

constexpr std::array roles{"ddp", "mpddp", "extra1", "extra2", "extra3"};

std::string own_role(const std::string& value) {
  if (value == "ddp") return "ddp";
  if (value == "mp-ddp") return "mpddp";
  return "";
}

}  // namespace

std::vector<Series> series_of_arms(const Cell& cell, const Metric& metric, const Palette& palette,
                                   std::vector<Point> Curve::*points) {
  std::vector<Series> result;
  for (const Arm* arm : cell.compared())
    for (const Curve& curve : arm->curves) {
      if (curve.metric != metric.name || curve.replica >= 0 || (curve.*points).empty()) continue;
      result.push_back({key_of(*arm), label_of(*arm, metric), arm->value, palette.at(arm->value), 0,
                        curve.*points, std::nullopt});
      if (points == &Curve::points) result.back().final = curve.final;
    }
  return result;
}

std::vector<Series> series_of(const Cell& cell, const Metric& metric, const Palette& palette) {
  std::vector<Series> result = series_of_arms(cell, metric, palette, &Curve::points);
  for (const Arm* arm : cell.compared())
    for (const Curve& curve : arm->curves) {
      if (curve.metric != metric.name || curve.replica < 0) continue;
      const std::string label =
          fmt::format("{} {} {}", arm->value, arm->stages > 1 ? "replica" : "rank", curve.replica);
      result.push_back({label, label, arm->value, palette.at(arm->value), static_cast<int>(curve.replica) + 1,
                        curve.points, curve.final});
    }
  return result;
}

Palette make_palette(const std::vector<Comparison>& comparisons) {
  Palette palette;
  std::set<std::string> used;
  std::vector<std::string> others;
  for (const Comparison& comparison : comparisons)
    for (const Cell& cell : comparison.cells) {
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
