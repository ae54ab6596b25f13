// How an arm's epoch time scales: speed-up and efficiency over devices, beside what the machine itself can
// give.
#pragma once

#include <vector>

#include "reports/cells.h"
#include "reports/figure.h"
#include "reports/palette.h"

namespace trainyard::reports {

// What N independent runs at once reach together against one alone: N · t₁ / t_N. It is the most that any
// strategy can reach on this machine, as they share memory, caches and power but never wait for one another.
struct MachineLimit {
  int runs = 0;  // at once
  double speed_up = 0;
};

// From runs like the cell's baseline (seed and epochs may differ) that were trained side by side, each on
// devices of its own; none where the database has no such runs.
std::vector<MachineLimit> machine_limits(const ReportData& data, const Cell& cell);

// Distinct devices of a run; its ranks where that is unknown.
int devices_of(const Observation& observation);

// Two figures: speed-up and efficiency. Empty where no arm has times.
std::vector<Figure> make_scaling(const ReportData& data, const Cell& cell, const Palette& palette);

}  // namespace trainyard::reports
