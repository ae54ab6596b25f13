#include "reports/content/difference_panels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "reports/answer/verdict_text.h"
#include "reports/content/panels.h"

namespace trainyard::reports {

namespace {

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

}  // namespace

bool lie_on_each_other(const Lines& lines) {
  const Curves curves = arms_of(lines);
  if (curves.size() < 2) return false;
  const double most = most_distance * extent_of(curves);
  for (std::size_t i = 0; i < curves.size(); ++i)
    for (std::size_t j = i + 1; j < curves.size(); ++j)
      if (!(distance(curves[i], curves[j]) <= most)) return false;
  return true;
}

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

}  // namespace trainyard::reports
