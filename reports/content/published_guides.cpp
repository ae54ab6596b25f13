#include "reports/content/published_guides.h"

#include <algorithm>
#include <limits>
#include <set>

namespace trainyard::reports {

namespace {

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

const std::vector<experiments::PublishedSource>& sources_of(const ReportData& data) {
  static const std::vector<experiments::PublishedSource> none;
  return data.plan.published ? data.plan.published->sources : none;
}

}  // namespace

std::vector<Guide> published_guides(const ReportData& data, const std::string& model, const Metric& metric,
                                    const std::vector<Series>& series) {
  std::vector<Guide> guides;
  const std::string name = published_name(metric);
  const bool several = sources_of(data).size() > 1;
  for (const experiments::PublishedSource& source : sources_of(data)) {
    for (const experiments::PublishedSeries& published : source.series) {
      if (published.model != model || published.metric != name) continue;
      guides.push_back({"published " + published.arm + (several ? ", " + source.name : ""), "published",
                        points_of(published, shown_scale(metric.kind), series)});
    }
  }
  return guides;
}

std::string published_caption(const ReportData& data, const std::vector<Guide>& guides) {
  if (guides.empty()) return "";
  std::string names;
  for (const experiments::PublishedSource& source : sources_of(data))
    names += (names.empty() ? "" : ", ") + source.name;
  return " Dash-dotted: published (" + names + "), on other hardware; in no verdict.";
}

std::vector<std::string> published_notes(const ReportData& data) {
  std::vector<std::string> notes;
  for (const experiments::PublishedSource& source : sources_of(data)) {
    std::string hardware;
    std::set<std::string> kinds;
    for (const auto& [arm, name] : source.hardware) {
      hardware.append(hardware.empty() ? "" : ", ").append(arm).append(" on ").append(name);
      kinds.insert(name);
    }
    std::string note =
        "Published numbers (" + source.name + ") are shown for orientation and enter no verdict";
    if (!hardware.empty()) note += ": " + hardware;
    notes.push_back(note + (kinds.size() > 1
                                ? ". Its arms differ in hardware, which its comparison cannot tell apart "
                                  "from the strategy."
                                : "."));
  }
  return notes;
}

}  // namespace trainyard::reports
