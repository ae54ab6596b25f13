// The schema of results.db: tables, indices and views. `Database::open_for_writing` creates it. There are no
// migrations: a database of another schema is rebuilt from the yard's files (db/ingest/maintenance.h).
// db/README.md documents every table and view.
#pragma once

#include <string>
#include <vector>

namespace SQLite {
class Database;
}

namespace trainyard::db {

// `PRAGMA application_id` of every results database: "TYRD".
inline constexpr int application_id = 0x54595244;

// Create tables and views in an empty database, in one transaction. Does nothing if another process has just
// created them.
void make_schema(SQLite::Database& connection);

// The views, created with the tables.
// - The `task_…` views add perplexity, BLEU and PSNR to all columns of the view they are named after.
// - Only these need SQLite's mathematical functions: other views work in tools that are built without them.
// - The formulas and their sources are in db/README.md.

// One CREATE VIEW statement per view, in an order in which they can be created.
std::vector<std::string> views();

// Columns for the axes that vary. The views final_metrics and task_final_metrics have one column per such
// axis. The writer keeps these views up to date (`Ingest`, `Database::open_for_writing`). Exports add the
// same columns to other views. db/README.md describes them.

// Names of the axes that vary in one experiment, or in any experiment if the name is empty. Model, strategy
// and seed are not included.
// - First the axes that a matrix in the journal varies, in order of first use.
// - Then, by name, other values that differ between runs of one experiment, model and strategy (for example
//   by `--set`).
std::vector<std::string> varying_axes(const SQLite::Database& connection, const std::string& experiment = "");

// The column of an axis in a view that has the columns `taken`.
// - An axis has no column if the view has its value already (model, epochs, dataset …).
// - If the name is taken by something else, the column is called axis_NAME.
struct AxisColumn {
  std::string axis;
  std::string name;  // not quoted
};
std::vector<AxisColumn> axis_columns(const std::vector<std::string>& axes,
                                     const std::vector<std::string>& taken);

// The value of `axis` for the row `v`: "(SELECT … WHERE x.run_key = v.run_key …)".
std::string axis_value_sql(const std::string& axis);
std::string quoted_identifier(const std::string& name);

// Create the views final_metrics and task_final_metrics again if the set of varying axes has changed.
void refresh_axis_views(SQLite::Database& connection);

}  // namespace trainyard::db
