// Columns for what varies: which axes have more than one value, and the views final_metrics and
// task_final_metrics with one column per such axis. The writer keeps the views up to date (`Ingest`,
// `Database::open_for_writing`); exports add the same columns to other views. db/README.md describes them.
#pragma once

#include <string>
#include <vector>

#include "db/database/database.h"

namespace SQLite {
class Database;
}

namespace trainyard::db {

// Names of the axes that vary, beside model, strategy and seed: those that a matrix of the journal varies, in
// the order in which it first does, then those that differ between runs of one experiment, model and strategy
// in any other way (`--set`, say), by name. Of one experiment, or, without a name, of any.
std::vector<std::string> varying_axes(const SQLite::Database& connection, const std::string& experiment = "");

// One column: what its name is beside the columns `taken`, and its value as SQL. A name that is taken by the
// same value (model, epochs, dataset …) gives none; one that is taken by something else is called axis_NAME.
struct AxisColumn {
  std::string axis;
  std::string name;  // as it is, not quoted
};
std::vector<AxisColumn> axis_columns(const std::vector<std::string>& axes,
                                     const std::vector<std::string>& taken);

// "(SELECT … WHERE x.run_key = v.run_key …)": the value of `axis` for the row `v`.
std::string axis_value_sql(const std::string& axis);
std::string quoted_identifier(const std::string& name);

// CREATE VIEW final_metrics, then task_final_metrics, with a column per axis.
std::vector<std::string> axis_views(const std::vector<std::string>& axes);

// Makes both views anew if their columns are not those of the axes that vary now.
void refresh_axis_views(SQLite::Database& connection);

}  // namespace trainyard::db
