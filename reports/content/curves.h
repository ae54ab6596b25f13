// Curves of a cell: epoch rows of an arm's runs by replica, and their means over seeds.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/format/figure.h"
#include "reports/results/cells.h"
#include "reports/results/metrics.h"

namespace trainyard::reports {

// Colour role of each arm in a report, by value of the compared axis. (Colour is the arm, dash is the
// replica.) The baseline is "single", known strategies have fixed roles, and others get the next free role.
using Palette = std::map<std::string, std::string>;
Palette make_palette(const std::vector<Cell>& cells);

// The series of lines and bars; empty for other figures.
const std::vector<Series>& series_of(const Figure& figure);

// The distinct series of a page, for its legend: baseline first, an arm's ranks before its average.
std::vector<Series> legend(const std::vector<Figure>& figures);

// Values of one metric of one run, by epoch.
using Curve = std::vector<std::pair<std::int64_t, double>>;

// Series of one metric for all arms of a cell: the baseline, then each arm's replicas and its average.
class CurveReader {
 public:
  CurveReader(const ReportData& data, const Cell& cell, const Palette& palette);
  std::vector<Series> series(const Metric& metric) const;
  // The averages over elapsed seconds of training and validation instead of epochs.
  std::vector<Series> over_seconds(const Metric& metric) const;

 private:
  void add_arm(std::vector<Series>& result, const Arm& arm, const Metric& metric) const;

  std::vector<Point> seconds_points(const Arm& arm, const Metric& metric) const;

  using Rows = std::map<std::string, std::vector<const db::EpochRow*>>;  // of the cell, by run
  static Rows rows_of(const Cell& cell, const std::vector<db::EpochRow>& all);
  Rows averages_;
  Rows replicas_;
  const Cell& cell_;
  const Palette& palette_;
};

// Legend text for a whole arm: "single", or "ddp average" if it has replicas.
std::string label_of_average(const Arm& arm);

// Mean and 95 % t interval of the finite values. For one value, low and high are NaN.
Point mean_point(double x, const std::vector<double>& values);

// The final value of a run's curve.
// - Accuracy and loss: last epoch.
// - Train seconds and energy: median without the first epoch. With fewer than 3 epochs, all count.
// - Validation seconds: sum.
double final_number(const Metric& metric, const Curve& curve);

}  // namespace trainyard::reports
