// Curves of a cell: epoch rows of an arm's runs by replica, and their means over seeds.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reports/format/figure.h"
#include "reports/results/cells.h"
#include "reports/results/metrics.h"
#include "reports/verdicts/verdict.h"

namespace trainyard::reports {

// Colour role of each arm in a report, by value of the compared axis. (Colour is the arm, dash is the
// replica.) The baseline is "single", known strategies have fixed roles, and others get the next free role.
using Palette = std::map<std::string, std::string>;
Palette make_palette(const std::vector<Cell>& cells);

// The series of lines and bars; empty for other figures.
const std::vector<Series>& series_of(const Figure& figure);

// The distinct series of a page, for its legend: the arms, baseline first, then their ranks.
std::vector<Series> legend(const std::vector<Figure>& figures);

// Values of one metric of one run, by epoch.
using Curve = std::vector<std::pair<std::int64_t, double>>;

// Series of one metric for all arms of a cell: the baseline, the other arms, then the replicas of each arm.
class CurveReader {
 public:
  CurveReader(const ReportData& data, const Cell& cell, const Palette& palette);
  std::vector<Series> series(const Metric& metric) const;
  // The averages over elapsed seconds of training and validation instead of epochs.
  std::vector<Series> over_seconds(const Metric& metric) const;
  // Each arm against the baseline: mean over pairs of the change at each epoch, in percent if `scale` is a
  // ratio.
  std::vector<Series> differences(const Metric& metric, Scale scale) const;

 private:
  void add_arm(std::vector<Series>& result, const Arm& arm, const Metric& metric) const;
  void add_ranks(std::vector<Series>& result, const Arm& arm, const Metric& metric) const;
  static void add(std::vector<Series>& result, Series series, const std::vector<Curve>& curves,
                  const Metric& metric);

  std::vector<Point> seconds_points(const Arm& arm, const Metric& metric) const;

  using Rows = std::map<std::string, std::vector<const db::EpochRow*>>;  // of the cell, by run
  static Rows rows_of(const Cell& cell, const std::vector<db::EpochRow>& all);
  Rows averages_;
  Rows replicas_;
  const Cell& cell_;
  const Palette& palette_;
};

// Key of the series of a whole arm.
std::string key_of(const Arm& arm);

// Label of a whole arm: "single". If it has ranks, also how their values become one: "ddp average", "ddp
// slowest rank", "ddp all devices".
std::string label_of(const Arm& arm, const Metric& metric);

// Mean and 95 % t interval of the finite values. For one value, low and high are NaN.
Point mean_point(double x, const std::vector<double>& values);

// The final value of a run's curve.
// - Accuracy and loss: last epoch.
// - Train seconds and energy: median without the first epoch. With fewer than 3 epochs, all count.
// - Validation seconds: sum.
double final_number(const Metric& metric, const Curve& curve);

}  // namespace trainyard::reports
