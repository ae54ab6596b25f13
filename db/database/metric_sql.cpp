#include "db/database/metric_sql.h"

#include <utility>

#include <fmt/format.h>

#include "experiments/protocol/time_parts.h"

namespace trainyard::db {

namespace {

template <typename... Words>
std::string filled(std::string_view pattern, Words&&... words) {
  return ", " + fmt::format(fmt::runtime(pattern), std::forward<Words>(words)...);
}

std::string replaced(std::string_view formula, std::string_view what) {
  std::string text;
  for (const char letter : formula) letter == '@' ? text += what : text += letter;
  return text;
}

// The names as an SQL list: "'a', 'b'".
std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names)
    if (!name.empty()) text += (text.empty() ? "'" : ", '") + std::string(name) + "'";
  return text;
}

std::string value_of_sums(const models::Metric& metric) {
  return "(SELECT " + std::string(metric.of_sums) +
         " FROM (SELECT name, IIF(COUNT(sum) = COUNT(*), SUM(sum), NULL) AS sum, SUM(weight) AS weight "
         "FROM metric WHERE run_key = ?1 AND attempt = ?2 AND epoch = 0 AND phase = 'test' AND name IN (" +
         listed(metric.sums) + ") GROUP BY name))";
}

std::string each(Phases phases, std::string_view pattern, bool (*wanted)(const models::Metric&)) {
  std::string text;
  for (const std::string_view phase : phases)
    for (const models::Metric& metric : models::all_metrics)
      if (!metric.record.empty() && wanted(metric))
        text += filled(pattern, fmt::arg("phase", phase), fmt::arg("name", metric.name),
                       fmt::arg("record", metric.record));
  return text;
}

}  // namespace

std::string each_recorded(Phases phases, std::string_view pattern) {
  return each(phases, pattern, [](const models::Metric&) { return true; });
}

std::string each_mean(Phases phases, std::string_view pattern) {
  return each(phases, pattern, [](const models::Metric& metric) { return metric.part == 0; });
}

std::string each_loss_part(Phases phases, std::string_view pattern) {
  return each(phases, pattern, [](const models::Metric& metric) { return metric.part > 0; });
}

std::string each_of_loss(Phases phases) {
  std::string text;
  for (const models::Metric& metric : models::all_metrics)
    for (const std::string_view phase : phases)
      if (!metric.of_loss.empty())
        text += filled("CASE WHEN r.task IN ({}) THEN {} END AS {}_{}", listed(metric.tasks),
                       replaced(metric.of_loss, fmt::format("v.{}_loss", phase)), phase, metric.name);
  return text;
}

std::string each_of_sums(std::string_view pattern) {
  std::string text;
  for (const models::Metric& metric : models::all_metrics)
    if (!metric.of_sums.empty())
      text += filled(pattern, fmt::arg("name", metric.name), fmt::arg("value", value_of_sums(metric)));
  return text;
}

std::string each_part(std::string_view pattern) {
  std::string text;
  for (const std::string_view part : experiments::time_parts) text += filled(pattern, fmt::arg("part", part));
  return text;
}

}  // namespace trainyard::db
