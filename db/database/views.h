// The views of results.db, made with its tables (db/database/schema.h). The views of what is derived for
// single tasks (perplexity and BLEU of translations, PSNR of reconstructions) hold all columns of the view
// they are named after. They alone need SQLite's mathematical functions: the others stay readable with tools
// that are built without them. The formulas and their sources are in db/README.md.
#pragma once

#include <string>
#include <vector>

namespace trainyard::db {

// All views, each as one CREATE VIEW statement, in an order in which they can be made.
std::vector<std::string> views();

// CREATE VIEW task_final_metrics. `more_columns`, each behind a comma, of the row `v` of final_metrics.
std::string task_final_metrics(const std::string& more_columns);

}  // namespace trainyard::db
