#include "db/database/axis_views.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/Savepoint.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "db/database/metric_sql.h"
#include "db/database/statements.h"
#include "db/database/views.h"

namespace trainyard::db {

namespace {

// The columns of final_metrics and task_final_metrics together: a column has one name in both.
std::vector<std::string> fixed_columns() {
  std::vector<std::string> names{"run_key", "experiment",        "model",       "strategy",     "seed",
                                 "variant", "peak_device_bytes", "times_count", "times_problem"};
  for (const models::Cost& cost : models::all_costs) names.emplace_back(cost.final_column);
  for (const models::Metric& metric : models::all_metrics)
    for (const std::string_view phase : metric.phases())
      names.push_back(fmt::format("{}_{}", phase, metric.name));
  return names;
}

// Columns that have the value of the axis of the same name in every view.
constexpr std::array<std::string_view, 7> same_value{"model",   "strategy", "seed",  "epochs",
                                                     "dataset", "replicas", "stages"};

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string doubled(const std::string& text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\0') continue;  // ends SQL
    out += c;
    if (c == quote) out += c;
  }
  return out + quote;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool names_the_arm(const std::string& name) {
  return name == "model" || name == "strategy" || name == "seed";
}

void add_axis(std::vector<std::string>& names, const std::string& name) {
  if (!names_the_arm(name) && !has(names, name)) names.push_back(name);
}

// Add the axes that the matrices in the journal vary.
void add_planned(const SQLite::Database& connection, const std::string& experiment,
                 std::vector<std::string>& names) {
  SQLite::Statement entries(connection,
                            "SELECT varied FROM journal WHERE type = 'run' AND varied IS NOT NULL "
                            "AND (?1 = '' OR experiment = ?1) ORDER BY id");
  Bound rows(entries, experiment);
  while (rows.next()) {
    const auto varied = nlohmann::json::parse(rows.row().getColumn(0).getString(), nullptr, false);
    if (!varied.is_array()) continue;
    for (const auto& name : varied)
      if (name.is_string()) add_axis(names, name.get<std::string>());
  }
}

// Add other values that differ between runs of one experiment, model and strategy. The global batch is
// omitted if the batch varies, because it is derived from it.
void add_found(const SQLite::Database& connection, const std::string& experiment,
               std::vector<std::string>& names) {
  SQLite::Statement found(connection, R"sql(
    SELECT DISTINCT name FROM (
      SELECT x.name AS name FROM experiment_run m
      CROSS JOIN run r ON r.run_key = m.run_key
      CROSS JOIN axis_value x ON x.run_key = m.run_key
      WHERE ?1 = '' OR m.experiment = ?1
      GROUP BY m.experiment, r.model, m.strategy, x.name HAVING MIN(x.json) <> MAX(x.json))
    ORDER BY name)sql");
  std::vector<std::string> more;
  Bound rows(found, experiment);
  while (rows.next()) more.push_back(rows.row().getColumn(0).getString());
  for (const std::string& name : more)
    if (name != "global_batch" || (!has(names, "batch") && !has(more, "batch"))) add_axis(names, name);
}

// SQL of the text of all axes: "batch 64, learning_rate 0.05". Empty if none varies.
std::string variant_sql(const std::vector<std::string>& axes) {
  std::string text;
  for (const std::string& axis : axes)
    text += fmt::format("{}COALESCE({} || {}, '')", text.empty() ? "" : " || ",
                        doubled(", " + axis + " ", '\''), axis_value_sql(axis));
  return axes.empty() ? "''" : "substr(" + text + ", 3)";
}

std::string final_metrics_view(const std::vector<std::string>& axes) {
  std::string text = fmt::format(
      "CREATE VIEW final_metrics AS\n"
      "SELECT v.run_key, v.experiment, v.model, v.strategy, v.seed{}"
      ", s.epoch_train_seconds, s.total_train_seconds, f.total_validation_seconds, s.epoch_energy_joules, "
      "s.peak_device_bytes, "
      "s.epoch_processor_seconds, s.times_count, s.times_problem,\n"
      "  {} AS variant",
      each_mean(all_phases, "f.{phase}_{name}"), variant_sql(axes));
  for (const AxisColumn& column : axis_columns(axes, fixed_columns()))
    text += fmt::format(",\n  {} AS {}", axis_value_sql(column.axis), quoted_identifier(column.name));
  return text +
         "\nFROM run_final f\n"
         "JOIN run_state s ON s.run_key = f.run_key\n"
         "JOIN run_in_experiment v ON v.run_key = f.run_key";
}

std::string stored_sql(const SQLite::Database& connection, const std::string& view) {
  SQLite::Statement statement(connection, "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = ?");
  Bound row(statement, view);
  return row.next() ? row.row().getColumn(0).getString() : "";
}

}  // namespace

std::vector<std::string> varying_axes(const SQLite::Database& connection, const std::string& experiment) {
  std::vector<std::string> names;
  add_planned(connection, experiment, names);
  add_found(connection, experiment, names);
  return names;
}

std::vector<AxisColumn> axis_columns(const std::vector<std::string>& axes,
                                     const std::vector<std::string>& taken) {
  std::vector<std::string> used;
  for (const std::string& name : taken) used.push_back(lower_case(name));
  std::vector<AxisColumn> columns;
  for (const std::string& axis : axes) {
    if (has(used, axis) && std::ranges::find(same_value, axis) != same_value.end()) continue;
    std::string name = axis;
    while (has(used, lower_case(name))) name = "axis_" + name;
    used.push_back(lower_case(name));
    columns.push_back({axis, name});
  }
  return columns;
}

std::string axis_value_sql(const std::string& axis) {
  return "(SELECT x.value FROM axis_value x WHERE x.run_key = v.run_key AND x.name = " + doubled(axis, '\'') +
         ")";
}

std::string quoted_identifier(const std::string& name) {
  return doubled(name, '"');
}

std::vector<std::string> axis_views(const std::vector<std::string>& axes) {
  std::string more = ",\n  v.variant";
  for (const AxisColumn& column : axis_columns(axes, fixed_columns()))
    more += ", v." + quoted_identifier(column.name);
  return {final_metrics_view(axes), task_final_metrics(more)};
}

void refresh_axis_views(SQLite::Database& connection) {
  const std::vector<std::string> wanted = axis_views(varying_axes(connection));
  if (stored_sql(connection, "final_metrics") == wanted[0] &&
      stored_sql(connection, "task_final_metrics") == wanted[1])
    return;
  SQLite::Savepoint all(connection, "axis_views");
  connection.exec("DROP VIEW IF EXISTS task_final_metrics; DROP VIEW IF EXISTS final_metrics");
  for (const std::string& view : wanted) connection.exec(view);
  all.release();
}

}  // namespace trainyard::db
