// Cells and arms of a comparison. A cell is one model with one combination of all varied values except the
// compared axis and the pairing. Its arms are the values of the compared axis.
//
// - An arm has the training of its latest plan, with the seeds of all plans.
// - Seeds and arms that a later plan leaves out (`run --where …`) stay until the file does not have them.
// - Pointers refer to the ReportData, which must outlive the cells.
#pragma once

#include <string>
#include <vector>

#include "reports/document/report.h"
#include "reports/results/metrics.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

struct Observation {
  std::string pair;  // text of the pairing values: "3", "seed=3 fold=1"
  const db::RunSummary* run = nullptr;
  const db::FinalMetrics* final = nullptr;  // null: not finished
  const Launched* launched = nullptr;       // null: unknown
};

struct ArmRuns {
  std::string value;                 // of the compared axis: "ddp"
  std::vector<Observation> runs;     // in the order of `pair` values as planned
  std::size_t earlier_versions = 0;  // other settings or programs under this name that had results
};

struct CellRuns : CellName {
  ArmRuns baseline;
  std::vector<ArmRuns> arms;
  std::vector<ArmRuns> limits;  // if strategies are compared: independent runs at once, without verdicts
  std::vector<const ArmRuns*> compared() const;  // the baseline, then the arms
};

std::vector<CellRuns> make_cells(const ReportData& data, const experiments::Compare& compare);

// The run of `arm` with the same pairing values; null if there is none.
const Observation* partner_of(const Observation& run, const ArmRuns& arm);

// The run of the baseline that run `i` of the arm is compared with: its partner, else run by run.
const Observation* compared_with(const ArmRuns& baseline, const ArmRuns& arm, std::size_t i, bool paired);

bool is_open(const Observation& observation);  // planned, and neither finished nor failed

// Whether the value of a finished run may be used. Other processes, runs or a changed machine spoil times and
// energy (`times_problem`). An attempt with fewer replicas spoils every cost, also memory and processor time.
bool value_counts(const Observation& observation, const Metric& metric);

// Varying axes other than model, strategy and seed, for the columns of run tables: those of the matrix, then
// by name others that differ between runs of one model and strategy (for example by `--set`).
std::vector<std::string> varying_axes(const ReportData& data);

// "mlp ddp seed 3 batch=64": `model` (its name or title), strategy, seed and the other `varied` values.
std::string name_of(const db::RunSummary& run, const std::string& model,
                    const std::vector<std::string>& varied);

// A value of a run as text without quotes; empty if the run does not have it.
std::string value_of(const db::RunSummary& run, const std::string& name);

}  // namespace trainyard::reports
