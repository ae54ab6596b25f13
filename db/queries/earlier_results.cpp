#include "db/queries/earlier_results.h"

#include <cmath>

#include "db/database/statements.h"
#include "db/queries/queries.h"

namespace trainyard::db {

using nlohmann::json;

namespace {

// Numbers that are not finite have no form in JSON. They are left out.
json finite_values(const MetricValues& values) {
  json object = json::object();
  for (const NamedColumn& column : final_columns())
    if (const double value = values[column.column]; std::isfinite(value)) object[column.name] = value;
  return object;
}

MetricValues values_from(const json& object) {
  MetricValues values;
  for (const NamedColumn& column : final_columns())
    if (const auto found = object.find(column.name); found != object.end() && found->is_number())
      values[column.column] = found->get<double>();
  return values;
}

}  // namespace

json results_of(const Database& database, const std::vector<std::string>& keys) {
  json results = json::object();
  for (const std::string& key : keys) {
    const auto final = final_metrics_of_run(database, key);
    if (!final) continue;
    results[key] = {{"attempt", final->attempt},
                    {"launched", final->launched},
                    {"times_problem", final->times_problem},
                    {"values", finite_values(*final)}};
  }
  return results;
}

std::map<std::string, std::vector<EarlierResult>> earlier_results(const Database& database,
                                                                  const std::string& experiment) {
  const auto result_of = [](RowReader row) {
    std::string key = row.text();
    EarlierResult result;
    row.into(result.attempt, result.launched, result.times_problem);
    result.values = values_from(json::parse(row.text()));
    return std::pair(std::move(key), std::move(result));
  };
  std::map<std::string, std::vector<EarlierResult>> found;
  for (auto& [key, result] : read_rows(database, R"sql(
      SELECT e.run_key, e.attempt, e.launched, e.times_problem, e."values"
      FROM experiment_run m JOIN earlier_result e ON e.run_key = m.run_key
      WHERE m.experiment = ? ORDER BY e.run_key, e.attempt)sql",
                                       result_of, experiment))
    found[key].push_back(std::move(result));
  return found;
}

}  // namespace trainyard::db
