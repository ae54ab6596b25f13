// How an arm's epoch time scales: speed-up and efficiency over devices, beside what the machine itself can
// give.
#pragma once

#include <cmath>
#include <vector>

#include "reports/content/curves.h"
#include "reports/format/figure.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// What N independent runs at once reach together against one alone: N · t₁ / t_N. It is the most that any
// strategy can reach on this machine, as they share memory, caches and power but never wait for one another.
struct MachineLimit {
  int runs = 0;  // at once
  double speed_up = 0;
  double low = NAN, high = NAN;  // 95 % t interval over pairs, where there are any
  int pairs = 0;                 // 0: from runs of a packed sweep, medians against each other
};

// By number of runs, from runs that are like the cell's baseline in all but seed and epochs and had devices
// of their own: those of a strategy of kind `independent`, by pair; else single ones that a sweep packed side
// by side. Empty where the database has neither.
std::vector<MachineLimit> machine_limits(const ReportData& data, const Cell& cell);

// Distinct devices of a run; its ranks where that is unknown.
int devices_of(const Observation& observation);

// Two figures: speed-up and efficiency. Empty where no arm has times.
std::vector<Figure> make_scaling(const ReportData& data, const Cell& cell, const Palette& palette);

}  // namespace trainyard::reports
