#include "db/queries/export.h"

#include <array>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/database/axis_views.h"
#include "db/database/binding.h"
#include "db/database/errors.h"

namespace trainyard::db {

namespace {

const std::array<ExportedView, 5> views_of_export{
    {{"epochs", "epoch_average", "a row a run and epoch, all replicas together", "run_key, epoch"},
     {"ranks", "epoch_rank", "a row a run, epoch and rank", "run_key, epoch, rank"},
     {"final", "task_final_metrics", "a row a finished run: what verdicts are made of", "run_key"},
     {"runs", "run_summary", "a row a run: status, times, circumstances", "run_key"},
     {"times", "time_parts", "a row a finished run: where an epoch's seconds went", "run_key"}}};

nlohmann::json value_of(const SQLite::Column& column) {
  if (column.isNull()) return nullptr;
  if (column.isInteger()) return column.getInt64();
  if (column.isFloat()) return column.getDouble();
  return column.getString();
}

// Each axis that the experiment varies, behind a comma; task_final_metrics has them all itself.
std::string axis_columns_of(const SQLite::Database& connection, const std::string& view,
                            const std::string& experiment) {
  if (view == "task_final_metrics") return "";
  std::vector<std::string> taken;
  const SQLite::Statement columns(connection, "SELECT * FROM " + view);
  for (int i = 0; i < columns.getColumnCount(); ++i) taken.emplace_back(columns.getColumnName(i));
  std::string text;
  for (const AxisColumn& column : axis_columns(varying_axes(connection, experiment), taken))
    text += ", " + axis_value_sql(column.axis) + " AS " + quoted_identifier(column.name);
  return text;
}

}  // namespace

std::span<const ExportedView> exported_views() {
  return views_of_export;
}

void export_rows(const Database& database, const ExportedView& view, const std::string& experiment,
                 const std::function<void(const std::vector<std::string>&)>& columns,
                 const std::function<void(const ExportRow&)>& row) {
  translated(database.connection(), [&] {
    SQLite::Statement statement(
        database.connection(), "SELECT v.*" + axis_columns_of(database.connection(), view.view, experiment) +
                                   " FROM " + view.view + " v WHERE v.experiment = ? ORDER BY " + view.order);
    std::vector<std::string> names;
    for (int i = 0; i < statement.getColumnCount(); ++i) names.emplace_back(statement.getColumnName(i));
    columns(names);
    Bound rows(statement, experiment);
    while (rows.next()) {
      ExportRow values;
      for (int i = 0; i < statement.getColumnCount(); ++i)
        values.push_back(value_of(rows.row().getColumn(i)));
      row(values);
    }
    return 0;
  });
}

}  // namespace trainyard::db
