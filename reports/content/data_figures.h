// Figures of the data sets: samples per class, and pixel value density per colour channel.
#pragma once

#include <vector>

#include "reports/format/figure.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// Up to two figures per data set. Data without classes or without images lacks one of them.
std::vector<Figure> make_data_figures(const ReportData& data);

}  // namespace trainyard::reports
