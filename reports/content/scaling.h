// Scaling of an arm's epoch time: speed-up and efficiency over devices, with the limit of the machine.
#pragma once

#include <cmath>
#include <vector>

#include "reports/content/curves.h"
#include "reports/format/figure.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// Total speed-up of N independent runs at once: N · t₁ / t_N. No strategy can be faster on this machine: the
// runs share memory, caches and power, but never wait for each other.
struct MachineLimit {
  int runs = 0;  // at once
  double speed_up = 0;
  double low = NAN, high = NAN;  // 95 % t interval over pairs, if there are any
  int pairs = 0;                 // 0: ratio of medians, from runs of a packed sweep
};

// Limits by number of runs. The runs differ from the cell's baseline only in seed and epochs and do not share
// devices. Source: runs of a strategy of kind `independent`, by pair, else single runs of a packed sweep.
std::vector<MachineLimit> machine_limits(const ReportData& data, const Cell& cell);

// Number of distinct devices of a run, or of its ranks if that is unknown.
int devices_of(const Observation& observation);

// Two figures of a cell over devices, speed-up and efficiency. Empty with fewer than three numbers of devices.
std::vector<Figure> make_scaling(const ReportData& data, const Cell& cell, const Palette& palette);

// The same two figures for all cells, with one bar per cell and arm. Empty if all arms with times have the
// devices of the baseline.
std::vector<Figure> make_scaling_of_all(const ReportData& data, const std::vector<Cell>& cells,
                                        const Palette& palette);

}  // namespace trainyard::reports
