// Views of what is derived for single tasks: perplexity and BLEU of translations, PSNR of reconstructions.
// They hold all columns of the view they are named after. The only views that need SQLite's mathematical
// functions: the others stay readable with tools that are built without them. Used by
// `db/database/views.cpp`; the formulas and their sources stand in db/README.md.
#pragma once

#include <string>
#include <vector>

namespace trainyard::db {

// task_epoch_average and task_epoch_replica, each as one CREATE VIEW statement.
std::vector<std::string> task_views();

// CREATE VIEW task_final_metrics. `more_columns`, each behind a comma, of the row `v` of final_metrics.
std::string task_final_metrics(const std::string& more_columns);

}  // namespace trainyard::db
