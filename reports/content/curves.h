// Curves of a cell: epoch rows of an arm's runs gathered by replica, and their means over seeds.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/format/figure.h"
#include "reports/results/cells.h"
#include "reports/results/metrics.h"

namespace trainyard::reports {

// Which colour role an arm has, everywhere in one report: colour is the arm, dash is the replica.

// Role by value of the compared axis: the baseline is "single", known strategies have roles of their own,
// others take the next free one in the order of the cells.
using Palette = std::map<std::string, std::string>;
Palette make_palette(const std::vector<Cell>& cells);

// Of lines and bars; other figures have none.
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
  // The averages again, over seconds of training and validation so far in place of epochs.
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

// What the legend calls the arm as a whole: "single", "ddp average" where it has replicas.
std::string label_of_average(const Arm& arm);

// Mean and 95 % t interval; NaN low and high for one value. Values that are no numbers are left out.
Point mean_point(double x, const std::vector<double>& values);

// The number of a run that its curve stands for: accuracy and loss the last epoch, train seconds the median
// after the first epoch (of fewer than 3 none is dropped), validation seconds the sum.
double final_number(const Metric& metric, const Curve& curve);

}  // namespace trainyard::reports
