// The views of results.db, created with its tables (db/database/schema.h).
// - The `task_…` views add perplexity, BLEU and PSNR to all columns of the view they are named after.
// - Only these need SQLite's mathematical functions: other views work in tools that are built without them.
// - The formulas and their sources are in db/README.md.
#pragma once

#include <string>
#include <vector>

namespace trainyard::db {

// One CREATE VIEW statement per view, in an order in which they can be created.
std::vector<std::string> views();

// CREATE VIEW task_final_metrics. `more_columns` are columns of `v`, a row of final_metrics. Each begins with
// a comma.
std::string task_final_metrics(const std::string& more_columns);

}  // namespace trainyard::db
