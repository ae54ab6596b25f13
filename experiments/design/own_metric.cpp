#include "experiments/design/own_metric.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "models/metrics.h"

namespace trainyard::experiments {

using nlohmann::json;

bool OwnMetric::is_time() const {
  static constexpr std::array<std::string_view, 5> times{"s", "ms", "us", "min", "h"};
  return unit.ends_with("/s") || std::ranges::find(times, unit) != times.end();
}

bool is_title(const std::string& text) {
  constexpr std::size_t longest = 80;
  const bool one_line = std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
  return !text.empty() && text.size() <= longest && one_line && is_utf8(text);
}

std::string problem_of_metric_name(const std::string& name) {
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  constexpr std::size_t longest = 40;
  if (name.empty() || name.size() > longest || name.front() < 'a' || name.front() > 'z' ||
      !std::ranges::all_of(name, is_part))
    return "must be 1 to 40 characters of a-z 0-9 _, and begin with a letter";
  const auto is_metric = [&](const models::Metric& metric) {
    return metric.name == name || metric.record == name ||
           std::ranges::find(metric.sums, name) != metric.sums.end();
  };
  std::string end = "-" + name;
  std::ranges::replace(end, '_', '-');
  const auto is_cost = [&](const models::Cost& cost) { return cost.name.ends_with(end); };
  const bool taken =
      std::ranges::any_of(models::all_metrics, is_metric) || std::ranges::any_of(models::all_costs, is_cost);
  return taken ? "must not be that of a metric of trainyard" : "";
}

json to_json(const std::vector<OwnMetric>& metrics) {
  json object = json::object();
  for (const OwnMetric& metric : metrics)
    object[metric.name] = {{"better", metric.higher_is_better ? "higher" : "lower"},
                           {"combine", metric.is_sum ? "sum" : "mean"},
                           {"unit", metric.unit}};
  return object;
}

std::vector<OwnMetric> own_metrics_from_json(const json& object) {
  if (!object.is_object()) throw UserError("member metrics must be an object");
  std::vector<OwnMetric> metrics;
  for (const auto& entry : object.items()) {
    const std::string& name = entry.key();
    if (const std::string problem = problem_of_metric_name(name); !problem.empty())
      throw UserError(fmt::format("the name of metric {} {}", name, problem));
    const json& members = entry.value();
    const auto text = [&](const char* member, const char* fallback) {
      const auto found = members.is_object() ? members.find(member) : members.end();
      if (found == members.end()) return std::string(fallback);
      return found->is_string() ? found->get<std::string>() : std::string("\n");  // which nothing allows
    };
    const std::string unit = text("unit", ""), better = text("better", "\n"),
                      combine = text("combine", "mean");
    if (better != "higher" && better != "lower")
      throw UserError(fmt::format("metric {} must have better = \"higher\" or \"lower\"", name));
    if (combine != "mean" && combine != "sum")
      throw UserError(fmt::format("metric {} must have combine = \"mean\" or \"sum\"", name));
    if (!unit.empty() && !is_title(unit))
      throw UserError(fmt::format("the unit of metric {} must be one line of at most 80 bytes", name));
    metrics.push_back({name, unit, better == "higher", combine == "sum"});
  }
  return metrics;
}

}  // namespace trainyard::experiments
