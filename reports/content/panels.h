// The six panels of a cell: accuracies, losses and times by epoch, as figures.
#pragma once

#include <vector>

#include "reports/content/palette.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

std::vector<Figure> make_panels(const ReportData& data, const Cell& cell, const Palette& palette);

}  // namespace trainyard::reports
