// Pictures of the data: how many samples each class has, and the density of each colour channel.
#pragma once

#include <vector>

#include "reports/format/figure.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

// Of each data set in turn; a data set without classes or images has only the other picture.
std::vector<Figure> make_data_figures(const ReportData& data);

}  // namespace trainyard::reports
