// Runs of a CSV file that trainyard did not make, one row per run, as the data that the database has of other runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/results/report_data.h"

namespace trainyard::reports {

struct RunsFile {
  std::filesystem::path file;         // "-": standard input
  std::string arm, baseline;          // a column, and its value in the runs of the baseline
  std::vector<std::string> metrics;   // columns of numbers
  std::vector<std::string> pair, by;  // columns that make pairs and cells
  // For all metrics, "loss", or for one, "val_loss=loss": loss | accuracy | score | time, lower | higher, %, a number in
  // the unit of the effect. Without them the name says the kind, and the kind the others.
  std::vector<std::string> kinds, better, units, margins;
};

// Sets the metrics of this process (`set_metrics`). A run with an infinite number has diverged.
// UserError, with the line if it is about a row: an option or a cell is wrong, or two rows have the same arm, pair and
// cell.
ReportData read_runs(const RunsFile& options);

}  // namespace trainyard::reports
