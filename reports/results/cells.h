// Cells and arms: which runs are compared with which. A cell is one model and one combination of the values
// that the matrix varies beside the compared axis and the pairing; its arms are the values of the compared
// axis.
//
// An arm has the training that was planned for it last, with the seeds of all plans: seeds that a later plan
// leaves out (`run --where …`) stay, and so does an arm, until the file has it no longer. Pointers point into
// the ReportData, which must outlive the cells.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/results/report_data.h"

namespace trainyard::reports {

struct Observation {
  std::string pair;  // text of the pairing values: "3", "seed=3 fold=1"
  const db::RunSummary* run = nullptr;
  const db::FinalMetrics* final = nullptr;  // null: not finished
  const Launched* launched = nullptr;       // null: unknown
};

struct Arm {
  std::string value;              // of the compared axis: "ddp"
  std::vector<Observation> runs;  // in the order of `pair` values as planned
};

struct Cell {
  std::string model;
  std::vector<std::pair<std::string, std::string>> further;  // other varied values, by name
  std::string label;  // "MLP", "MLP, batch 64": the model and what is not the same in all cells
  std::string slug;   // unique and safe as a file name and an anchor
  Arm baseline;
  std::vector<Arm> arms;
  std::vector<Arm>
      limits;  // where strategies are compared: independent runs at once, which no verdict judges
};

std::vector<Cell> make_cells(const ReportData& data, const experiments::Compare& compare);

bool is_open(const Observation& observation);  // planned, and neither finished nor failed

// The axes beside model, strategy and seed that vary: those of the matrix, then what else differs between
// runs of one model and strategy (`--set`, say), by name. Tables of runs have a column for each.
std::vector<std::string> varying_axes(const ReportData& data);

// "mlp ddp seed 3 batch=64": `model` (its name or title), strategy, seed and what else is `varied`.
std::string name_of(const db::RunSummary& run, const std::string& model,
                    const std::vector<std::string>& varied);

// "single"; of other axes than strategies, models and groups "batch 64", as a number says nothing alone.
std::string baseline_text(const experiments::Compare& compare);

// A value of a run as text without quotes; empty where the run has no such value.
std::string value_of(const db::RunSummary& run, const std::string& name);

// `text` in lower case, anything but a – z, 0 – 9 and dots replaced by single hyphens.
std::string slug_of(const std::string& text);

}  // namespace trainyard::reports
