#include "db/export.h"

#include <array>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/binding.h"
#include "db/errors.h"

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

}  // namespace

std::span<const ExportedView> exported_views() {
  return views_of_export;
}

void export_rows(const Database& database, const ExportedView& view, const std::string& experiment,
                 const std::function<void(const std::vector<std::string>&)>& columns,
                 const std::function<void(const ExportRow&)>& row) {
  translated(database.connection(), [&] {
    SQLite::Statement statement(
        database.connection(), "SELECT * FROM " + view.view + " WHERE experiment = ? ORDER BY " + view.order);
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
