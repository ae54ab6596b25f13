// Curves of a cell: epoch rows of an arm's runs gathered by replica, and their means over seeds.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/cells.h"
#include "reports/figure.h"
#include "reports/metrics.h"
#include "reports/palette.h"

namespace trainyard::reports {

// Values of one metric by run and epoch.
using Curves = std::map<std::string, std::map<std::int64_t, double>>;

// Series of one metric for all arms of a cell: the baseline, then each arm's replicas and its average.
class CurveReader {
 public:
  CurveReader(const ReportData& data, const Cell& cell, const Palette& palette);
  std::vector<Series> series(const Metric& metric) const;

 private:
  void add_arm(std::vector<Series>& result, const Arm& arm, const Metric& metric) const;

  std::map<std::string, std::vector<const db::EpochRow*>> averages_;  // by run
  std::map<std::string, std::vector<const db::EpochRow*>> replicas_;
  const Cell& cell_;
  const Palette& palette_;
};

// Mean and 95 % t interval; NaN low and high for one value. Values that are no numbers are left out.
Point mean_point(double x, const std::vector<double>& values);

// The number of a run that its curve stands for: accuracy and loss the last epoch, train seconds the median
// after the first epoch (of fewer than 3 none is dropped), validation seconds the sum.
double final_number(const Metric& metric, const std::map<std::int64_t, double>& curve);

}  // namespace trainyard::reports
