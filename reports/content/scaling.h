// Scaling of an arm's epoch time: speed-up and efficiency over devices, with the limit of the machine.
#pragma once

#include <string>
#include <vector>

#include "reports/content/curves.h"
#include "reports/document/report.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

// Two figures of a cell over devices, speed-up and efficiency. Empty with fewer than three numbers of devices.
std::vector<Figure> make_scaling(const Cell& cell, const Palette& palette);

// The same two figures for all cells, with one bar per cell and arm. Empty if all arms with times have the
// devices of the baseline.
std::vector<Figure> make_scaling_of_all(const Report& report, const Palette& palette);

// "2 independent runs at once: speed-up 1.83, 95 % interval 1.79 to 1.87".
std::string limit_text(const MachineLimit& limit);

// " Left out: 10 runs whose times do not count."; empty if the times of all finished runs of the cells count.
std::string uncounted_text(const Report& report, const std::vector<const Cell*>& cells);

}  // namespace trainyard::reports
