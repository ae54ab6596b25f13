// The parts of a report that `make_report` puts together: results, curves, speed-ups, studies and published numbers.
#pragma once

#include <vector>

#include "reports/document/report.h"
#include "reports/verdicts/comparison.h"

namespace trainyard::reports {

// Mean and 95 % t interval of the finite values. For one value, low and high are NaN.
Point mean_point(double x, const std::vector<double>& values);

// Adds the results of each arm: mean, 95 % t interval and number of runs of each metric.
void add_samples(const CellVerdicts& judged, const experiments::Compare& compare, Cell& cell);

// Adds the curves of each arm: epoch rows by replica, and their means over seeds. `cell` has its verdicts already. Runs are
// the finished ones, or running ones if none has finished.
void add_curves(const ReportData& data, const CellRuns& runs, Cell& cell);

// Adds to each arm its speed-up, the mean seconds of each part of an epoch over the runs that recorded them, from times
// that count, and the timeline of a step that all ranks of a run have recorded. Adds the machine's limits: their runs
// differ from the cell's baseline only in seed and epochs, and ran under the same circumstances. Source: runs of a
// strategy of kind `independent`, by pair, else single runs of a packed sweep. A limit above the number of runs at once
// is impossible: it is left out, and a statement names its runs.
void add_scaling(const ReportData& data, const CellRuns& runs, Cell& cell,
                 std::vector<Statement>& statements);

// Adds what the ranks of each arm have sent and held, in runs that always had all replicas.
void add_rank_costs(const ReportData& data, const CellRuns& runs, Cell& cell);

// Studies of numeric axes: final metrics and time per epoch over learning rate, batch, threads … One study per axis that is
// not of the model, the strategy, the seed or the pairing. Axes that change together are one study.
std::vector<ParameterStudy> parameter_studies(const ReportData& data,
                                              const std::vector<JudgedComparison>& comparisons);

// Numbers of the tables of publications, beside those of the runs that they are about.
// - A percentage is paired like a verdict: geometric mean over pairs of the arm's value divided by the baseline's.
//   The comparison must have the axis and the benchmark of the publication.
// - Total training time is the sum over all epochs. It counts if the times of the run count and no epoch was
//   disturbed.
// - Numbers without runs of this report are left out. So are those of earlier epochs if `data` has no epochs.
std::vector<PublishedNumber> published_numbers(const ReportData& data,
                                               const std::vector<JudgedComparison>& comparisons);

}  // namespace trainyard::reports
