// Views of what is derived for single tasks: perplexity and BLEU of translations, PSNR of reconstructions.
// They hold all columns of the view they are named after. The only views that need SQLite's mathematical
// functions: the others stay readable with tools that are built without them. Used by `db/views.cpp`; the
// formulas and their sources stand in db/README.md.
#pragma once

#include <string>
#include <vector>

namespace trainyard::db {

// task_epoch_average, task_epoch_replica and task_final_metrics, each as one CREATE VIEW statement.
std::vector<std::string> task_views();

}  // namespace trainyard::db
